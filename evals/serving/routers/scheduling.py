"""Two published routers that read sessions and programs, and balance load against caches.

`KvRouter`: NVIDIA Dynamo, `--router-mode kv` with its defaults (docs.nvidia.com/dynamo/v1.6.0,
routing concepts): KV events, overlap credit 1, no temperature. Session affinity is that of
`--router-session-affinity-ttl-secs`, mode `hard`; it is off by default.

`ProgramScheduling`: vllm-project/router, docs/program_scheduling.md at 14d6d81f (pull request 286,
open when it was read), with its defaults and `token_capacity_per_target`. Left out: cross-rank
resume (off by default), growth reserve, batch gain, capacity repair, segment yields.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.serving.routers.engine import BusyReplica
from evals.serving.routers.policies import Programs, Wire
from evals.serving.routers.replicas import BLOCK_TOKENS, Replica

_SESSION = "x-dynamo-session-id"
_ACTIVE_PROGRAMS = 64
_OUTPUT_TOKENS = 100
_FORCE_S = 300.0
LONGEST_TTL_S = 10.0
"""`max_acting_ttl_seconds`: how long a program that runs a tool may keep its tokens reserved."""


class KvRouter:
    """The replica on which least is left to compute, what it has under way included.

    With `affinity` a session stays where its first request went. `prefill_scale` weighs what is to
    compute against the blocks that are in use (`--router-prefill-load-scale`).
    """

    def __init__(
        self, replicas: Sequence[BusyReplica], affinity: bool, prefill_scale: float = 1.0
    ) -> None:
        self._replicas = replicas
        self._affinity = affinity
        self._scale = prefill_scale
        self._bound: dict[str, BusyReplica] = {}

    def choose(self, wire: Wire) -> Replica:
        session = wire.headers.get(_SESSION) if self._affinity else None
        if session in self._bound:
            return self._bound[session]
        tokens = len(wire.fields["prompt"])
        chosen = min(self._replicas, key=lambda each: self._cost(each, wire.blocks, tokens))
        if session is not None:
            self._bound[session] = chosen
        return chosen

    def ended(self, _: Wire) -> None:
        return

    def _cost(self, replica: BusyReplica, blocks: Sequence[int], tokens: int) -> float:
        uncached = tokens - BLOCK_TOKENS * replica.cached(blocks)
        prefill = (replica.prefilling + uncached) / BLOCK_TOKENS
        return self._scale * prefill + replica.potential(blocks)


@dataclass(slots=True)
class _Program:
    """What the router keeps of a program. Times are of the loop; `used_s` 0: not served yet."""

    replica: Replica
    running: list[Wire] = field(default_factory=list)
    acting: bool = False
    tokens: int = 0
    used_s: float = 0.0
    expiry: asyncio.TimerHandle | None = None

    @property
    def active(self) -> bool:
        """Whether its tokens count."""
        return bool(self.running) or self.acting


@dataclass(slots=True)
class _Waiting:
    """A request of a program that has no room yet."""

    wire: Wire
    program: _Program
    since_s: float
    admitted: asyncio.Event = field(default_factory=asyncio.Event)


class ProgramScheduling:
    """Holds requests back while the contexts of active programs fill a replica's `kv_tokens`.

    A program is active while a request of it runs and for `acting_ttl_s` after, if it comes back.
    Who comes back goes before who is new, unless a priority or the wait says otherwise.
    """

    def __init__(
        self, replicas: Sequence[Replica], kv_tokens: int, acting_ttl_s: float = 0.0
    ) -> None:
        self._binding = Programs(replicas, "cache_aware")
        self._kv_tokens = kv_tokens
        self._ttl_s = acting_ttl_s
        self._programs: dict[str, _Program] = {}
        self._waiting: list[_Waiting] = []
        self._homes: dict[int, Replica] = {}

    async def admit(self, wire: Wire) -> None:
        """Return when the request may go to its replica."""
        home = self._homes[id(wire)] = self._binding.choose(wire)
        if wire.program is None:
            return
        program = self._programs.setdefault(wire.program["program_id"], _Program(home))
        if program.active:
            self._start(program, wire)
            return
        waiting = _Waiting(wire, program, asyncio.get_running_loop().time())
        self._waiting.append(waiting)
        self._resume(home)
        try:
            await waiting.admitted.wait()
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def choose(self, wire: Wire) -> Replica:
        return self._homes[id(wire)]

    def ended(self, wire: Wire) -> None:
        home, context = self._homes.pop(id(wire)), wire.program
        self._binding.ended(wire)
        program = None if context is None else self._programs.get(context["program_id"])
        if context is None or program is None or wire not in program.running:
            return
        loop = asyncio.get_running_loop()
        program.running.remove(wire)
        program.used_s = loop.time()
        if program.running:
            program.tokens = _tokens(program.running)
        elif not context.get("expected_resume", True):
            del self._programs[context["program_id"]]
        elif self._ttl_s:
            program.acting = True
            program.expiry = loop.call_later(self._ttl_s, self._expired, program)
        self._resume(home)

    def _start(self, program: _Program, wire: Wire) -> None:
        if program.expiry is not None:
            program.expiry.cancel()
        program.acting, program.expiry = False, None
        program.running.append(wire)
        program.tokens = _tokens(program.running)

    def _expired(self, program: _Program) -> None:
        program.acting = False
        self._resume(program.replica)

    def _resume(self, replica: Replica) -> None:
        """Admit who has room on `replica`, in order; the first that has none ends it."""
        now = asyncio.get_running_loop().time()
        here = [each for each in self._waiting if each.program.replica is replica]
        for each in sorted(here, key=lambda each: _order(each, now)):
            if not (each.program.active or self._room(replica, each.wire)):
                return
            self._waiting.remove(each)
            self._start(each.program, each.wire)
            each.admitted.set()

    def _room(self, replica: Replica, wire: Wire) -> bool:
        programs = (each for each in self._programs.values() if each.replica is replica)
        active = [each.tokens for each in programs if each.active]
        fits = sum(active) + _tokens([wire]) <= self._kv_tokens
        return not active or (fits and len(active) < _ACTIVE_PROGRAMS)


def _order(waiting: _Waiting, now_s: float) -> tuple[bool, int, float, float]:
    context = waiting.wire.program or {}
    patient = now_s - waiting.since_s < _FORCE_S
    priority = int(context.get("priority", 0))
    return patient, -priority, -waiting.program.used_s, waiting.since_s


def _tokens(wires: Sequence[Wire]) -> int:
    """Of prompts, what they share counted once, and of the answers that are expected."""
    blocks, answers = set[int](), 0
    for wire in wires:
        blocks.update(wire.blocks)
        answers += (wire.program or {}).get("expected_output_length", _OUTPUT_TOKENS)
    return BLOCK_TOKENS * len(blocks) + answers
