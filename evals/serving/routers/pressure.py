"""The agent traffic on replicas that run short of memory: over their size, and over the load.

What section.py leaves out: a replica waits for room, evicts, and computes one prompt at a time, and
routers weigh a cached prefix against a queue. All counts are in virtual time and the same each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from evals.engine.rows import Lookup, Row
from evals.serving.programs import Program
from evals.serving.replay import Played, play
from evals.serving.routers.client import RoutedModel
from evals.serving.routers.engine import BusyReplica, Eviction
from evals.serving.routers.policies import CacheAware, Programs, RoutingPolicy
from evals.serving.routers.replicas import Replicas
from evals.serving.routers.scheduling import LONGEST_TTL_S, KvRouter, ProgramScheduling
from evals.serving.routers.section import REPLICAS, traffic
from evals.serving.server import KV_TOKENS
from evals.serving.speed import Speed
from evals.serving.systems.on_weft import (
    ANSWER_TOKENS_PER_S,
    PROMPT_TOKENS_PER_S,
    Knowledge,
    OnWeft,
)
from weft.testing import FakeClock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (4_096, 8_192, KV_TOKENS, 24_576)
"""Tokens of keys and values on each replica. The largest context of the traffic has 3,600."""
LOADS = (1.0, 2.0, 4.0, 8.0)
"""Work offered a second, as a multiple of what one request at a time does on every replica."""
LOAD = 4.0
"""Less never fills the smallest of the replicas."""
_FIRST_SEED = 60

Make = Callable[[Sequence[BusyReplica], int], RoutingPolicy]


@dataclass(frozen=True, slots=True)
class PressedSystem:
    """A router over replicas of a size in tokens, what weft tells it, and the engines' eviction."""

    make: Make
    context: tuple[str, ...] = ()
    eviction: Eviction = "lru"


def _cache_aware(replicas: Sequence[BusyReplica], _: int) -> RoutingPolicy:
    return CacheAware(replicas)


def _binding(replicas: Sequence[BusyReplica], _: int) -> RoutingPolicy:
    return Programs(replicas, "cache_aware")


def _scheduled(replicas: Sequence[BusyReplica], size: int, ttl_s: float) -> RoutingPolicy:
    return ProgramScheduling(replicas, size, ttl_s)


def _kv(
    replicas: Sequence[BusyReplica], _: int, affinity: bool, scale: float = 1.0
) -> RoutingPolicy:
    return KvRouter(replicas, affinity, scale)


_PROGRAMS, _DYNAMO = ("session", "vllm_router"), ("dynamo",)
SYSTEMS = {
    "cache_aware_without": PressedSystem(_cache_aware),
    "binding_with": PressedSystem(_binding, _PROGRAMS),
    "scheduling_with": PressedSystem(partial(_scheduled, ttl_s=0.0), _PROGRAMS),
    "scheduling_ttl_with": PressedSystem(partial(_scheduled, ttl_s=LONGEST_TTL_S), _PROGRAMS),
    "kv_without": PressedSystem(partial(_kv, affinity=False)),
    "kv_session_with": PressedSystem(partial(_kv, affinity=True), _DYNAMO),
    "kv_priority_with": PressedSystem(partial(_kv, affinity=False), _DYNAMO, "priority"),
    "kv_scale_4_without": PressedSystem(partial(_kv, affinity=False, scale=4.0)),
    "kv_scale_16_without": PressedSystem(partial(_kv, affinity=False, scale=16.0)),
}
"""vLLM's router, then Dynamo's. Each first without the contract's fields."""


def rows(quick: bool, *, programs: int | None = None) -> list[Row]:
    """Counts of each system at each size and each load. `quick`: one seed, fewer programs."""
    seeds, count = (1, 32) if quick else (2, 96)
    points = [(size, LOAD) for size in SIZES]
    points += [(KV_TOKENS, load) for load in LOADS if load != LOAD]
    found: list[Row] = []
    for size, load in points:
        traces = [_trace(_FIRST_SEED + seed, programs or count, load) for seed in range(seeds)]
        for name, system in SYSTEMS.items():
            each = [played(system, trace, size) for trace in traces]
            found += _system_rows(case(size, load), name, each)
    return found


def case(size: int, load: float) -> str:
    """The name of a point in the rows."""
    return f"router_pressure_kv_{size}_load_{load:g}"


def _trace(seed: int, count: int, load: float) -> list[Program]:
    made = traffic()
    speed = Speed(REPLICAS * PROMPT_TOKENS_PER_S, REPLICAS * ANSWER_TOKENS_PER_S)
    return made.trace(seed, count, speed.seconds(made.trace(seed, count, 1.0)) / load)


def played(
    system: PressedSystem, trace: Sequence[Program], size: int
) -> tuple[Played, Sequence[BusyReplica]]:
    """`trace` on new replicas of `size` tokens behind a new router."""
    clock = FakeClock()
    replicas = [
        BusyReplica(f"replica-{number}", size, system.eviction) for number in range(REPLICAS)
    ]

    async def run() -> Played:
        model = RoutedModel(system.make(replicas, size), system.context)
        return await play(trace, OnWeft(model, Knowledge(warm=False)), Replicas(replicas))

    return clock.run(run()), replicas


def _system_rows(
    where: str, name: str, each: Sequence[tuple[Played, Sequence[BusyReplica]]]
) -> list[Row]:
    queried = sum(one.counted.prefix_cache_queries for one, _ in each)
    hit = sum(one.counted.prefix_cache_hits for one, _ in each)
    busiest = sum(max(replica.computed for replica in replicas) for _, replicas in each)
    latency_s = fmean(value for one, _ in each for value in one.latencies_s.values())
    return [
        Row(where, name, "looked_up", queried, "prompt tokens"),
        Row(where, name, "hit", hit, "prompt tokens"),
        Row(where, name, "hit_rate", hit / queried, "share"),
        Row(where, name, "computed", queried - hit, "prompt tokens"),
        Row(where, name, "busiest", busiest * REPLICAS / (queried - hit), "x the mean replica"),
        Row(where, name, "mean_program_latency_s", latency_s, "virtual s"),
    ]


def table(found: Sequence[Row]) -> str:
    """One block for each point: hit rate, mean latency and balance of each system."""
    value, lines = Lookup(found), list[str]()
    columns = ("hit_rate", "computed", "busiest", "mean_program_latency_s")
    for where in dict.fromkeys(row.case for row in found):
        lines.append(f"{where:36}{''.join(f'{name:>24}' for name in columns)}")
        for name in SYSTEMS:
            cells = (f"{value(where, name, column) or 0.0:>24,.3f}" for column in columns)
            lines.append(f"  {name:34}{''.join(cells)}")
    return "\n".join(lines)


_LINES = {
    "cache_aware_without": ("vLLM's router, cache-aware, without", "#5b7db1", "--"),
    "binding_with": ("vLLM's router, programs bound", "#5b7db1", "-"),
    "scheduling_ttl_with": ("vLLM's router, programs held back", "#e3a535", "-"),
    "kv_without": ("Dynamo's KV router, without", "#0b6e4f", "--"),
    "kv_session_with": ("Dynamo's KV router, sessions", "#0b6e4f", "-"),
}


def panel_sizes(axes: Axes, figures: Lookup) -> None:
    """Hit rate over the size of a replica's keys and values."""
    _lines(axes, figures, [(size, case(size, LOAD)) for size in SIZES])
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.set_xlabel("tokens of keys and values on each replica")
    axes.set_title(f"over memory, at load {LOAD:g}")


def panel_loads(axes: Axes, figures: Lookup) -> None:
    """Hit rate over the load."""
    _lines(axes, figures, [(load, case(KV_TOKENS, load)) for load in LOADS])
    axes.set_xscale("log", base=2)
    axes.set_xticks(LOADS, [f"{load:g}" for load in LOADS])
    axes.set_xlabel("work offered, of what one request at a time does everywhere")
    axes.set_title(f"over load, with {KV_TOKENS:,} tokens")
    axes.legend(loc="lower left", frameon=False, fontsize=8)


PANELS = (panel_sizes, panel_loads)


def _lines(axes: Axes, figures: Lookup, points: Sequence[tuple[float, str]]) -> None:
    for name, (label, colour, style) in _LINES.items():
        rates = [figures(where, name, "hit_rate") or 0.0 for _, where in points]
        places = [place for place, _ in points]
        axes.plot(places, rates, style, color=colour, marker="o", label=label)
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_ylabel("prompt tokens found in a cache")
    axes.grid(alpha=0.25)
