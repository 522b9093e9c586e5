"""The agent traffic over four replicas, by each routing policy, with and without the contract.

All counts are of scripted replicas in virtual time, so that every run of a seed gives the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from evals.engine.rows import Lookup, Row
from evals.serving.programs import Program
from evals.serving.prose import Prose
from evals.serving.replay import Played, play
from evals.serving.routers.client import RoutedModel
from evals.serving.routers.policies import (
    CacheAware,
    ConsistentHash,
    Programs,
    RoundRobin,
    RoutingPolicy,
    Several,
)
from evals.serving.routers.replicas import Replica, Replicas
from evals.serving.speed import Speed
from evals.serving.systems.catalogue import IN_FLIGHT
from evals.serving.systems.on_weft import (
    ANSWER_TOKENS_PER_S,
    PROMPT_TOKENS_PER_S,
    Knowledge,
    OnWeft,
)
from evals.serving.traffic import Traffic
from weft.core.ports import ModelClient
from weft.serving.fleet import Fleet, FleetOptions
from weft.testing import FakeClock

CASE = "router_4_replicas"
REPLICAS = 4
LOAD = 2.0
"""Work offered a second, as a multiple of what one request at a time does on every replica."""
_FIRST_SEED = 40

Make = Callable[[Sequence[Replica]], RoutingPolicy]


@dataclass(frozen=True, slots=True)
class RoutedSystem:
    """A policy of the router, and the forms in which weft tells it of programs.

    `fleet`: instead, weft's own client chooses among the replicas.
    """

    make: Make = RoundRobin
    context: tuple[str, ...] = ()
    fleet: bool = False

    def client(self, replicas: Sequence[Replica], clock: FakeClock) -> ModelClient:
        """A client of all `replicas`."""
        if not self.fleet:
            return RoutedModel(self.make(replicas), self.context)
        each = [RoutedModel(self.make([replica])) for replica in replicas]
        return Fleet(each, FleetOptions(in_flight=IN_FLIGHT), clock=clock)


def _two(make: Make, replicas: Sequence[Replica]) -> Several:
    return Several([make(replicas), make(replicas)])


_WHOLE = ("session", "vllm_router")
SYSTEMS = {
    "round_robin": RoutedSystem(RoundRobin),
    "hash_without": RoutedSystem(ConsistentHash),
    "hash_with": RoutedSystem(ConsistentHash, ("session",)),
    "cache_aware_without": RoutedSystem(partial(Programs, binding="cache_aware")),
    "cache_aware_with": RoutedSystem(partial(Programs, binding="cache_aware"), _WHOLE),
    "count_with": RoutedSystem(partial(Programs, binding="least_program_count"), _WHOLE),
    "two_cache_aware_without": RoutedSystem(partial(_two, CacheAware)),
    "two_hash_with": RoutedSystem(partial(_two, ConsistentHash), ("session",)),
    "weft_fleet": RoutedSystem(fleet=True),
}
"""`cache_aware_without` is the router's plain cache-aware policy: no request has a program."""


def traffic() -> Traffic:
    """The agent traffic, a word a token: no weights are needed."""
    return Traffic(Prose(lambda text: [zlib.crc32(word.encode()) for word in text.split()]))


def rows(quick: bool, *, programs: int | None = None) -> list[Row]:
    """Counts of each system over all seeds. `quick`: one seed, fewer programs."""
    seeds, size = (1, 32) if quick else (5, 64)
    made = traffic()
    speed = Speed(REPLICAS * PROMPT_TOKENS_PER_S, REPLICAS * ANSWER_TOKENS_PER_S)
    traces = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        chosen = programs or size
        span_s = speed.seconds(made.trace(seed, chosen, 1.0)) / LOAD
        traces.append(made.trace(seed, chosen, span_s))
    found: list[Row] = []
    for name, system in SYSTEMS.items():
        found += _system_rows(name, [played(system, trace) for trace in traces])
    return found


def played(system: RoutedSystem, trace: Sequence[Program]) -> tuple[Played, Sequence[Replica]]:
    """`trace` on new replicas behind a new router."""
    replicas = [Replica(f"replica-{number}") for number in range(REPLICAS)]

    clock = FakeClock()

    async def run() -> Played:
        on_weft = OnWeft(system.client(replicas, clock), Knowledge(warm=False))
        return await play(trace, on_weft, Replicas(replicas))

    return clock.run(run()), replicas


def _system_rows(name: str, each: Sequence[tuple[Played, Sequence[Replica]]]) -> list[Row]:
    queried = sum(one.counted.prefix_cache_queries for one, _ in each)
    hit = sum(one.counted.prefix_cache_hits for one, _ in each)
    busiest = sum(max(replica.computed for replica in replicas) for _, replicas in each)
    return [
        Row(CASE, name, "requests", sum(len(one.record.outputs) for one, _ in each), "answers"),
        Row(CASE, name, "looked_up", queried, "prompt tokens"),
        Row(CASE, name, "hit", hit, "prompt tokens"),
        Row(CASE, name, "hit_rate", hit / queried, "share"),
        Row(CASE, name, "computed", queried - hit, "prompt tokens"),
        Row(CASE, name, "busiest", busiest * REPLICAS / (queried - hit), "x the mean replica"),
    ]


def table(found: Sequence[Row]) -> str:
    """The systems side by side."""
    value, lines = Lookup(found), []
    columns = ("requests", "looked_up", "hit", "hit_rate", "computed", "busiest")
    lines.append(f"{CASE:26}{''.join(f'{name:>12}' for name in columns)}")
    for name in SYSTEMS:
        cells = (value(CASE, name, column) or 0.0 for column in columns)
        shown = (f"{cell:>12,.3f}" if cell < 10 else f"{cell:>12,.0f}" for cell in cells)
        lines.append(f"  {name:24}{''.join(shown)}")
    return "\n".join(lines)
