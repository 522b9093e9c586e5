"""Routing policies after the published documentation of vLLM's router. They read bytes only.

vllm-project/router: docs/load_balancing/README.md at 301790e7 (consistent hash, cache aware, round
robin) and docs/program_scheduling.md at 14d6d81f (programs; pull request 286 of 2026-09-18, open
when it was read). Admission, pauses and health are left out: replicas here have room for everyone.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any, Literal, Protocol, runtime_checkable

from evals.serving.routers.replicas import BLOCK_TOKENS, Replica, block_hashes

_HEADERS = ("x-session-id", "x-user-id", "x-tenant-id")
"""Those that a client chooses. Request and trace ids differ with every request: see `Wire`."""
_VIRTUAL_NODES = 160
_CACHE_THRESHOLD = 0.5
_BALANCE_ABS, _BALANCE_REL = 32, 1.1


@dataclass(frozen=True)
class Wire:
    """A request as it arrives: headers without the request's own id, and the body's bytes."""

    headers: Mapping[str, str]
    body: bytes

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The body, parsed."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @cached_property
    def program(self) -> dict[str, Any] | None:
        """The canonical program context: an object, or its JSON text."""
        context = (self.fields.get("vllm_xargs") or {}).get("agentic_context")
        found: dict[str, Any] | None = json.loads(context) if isinstance(context, str) else context
        return found

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Hashes of the whole blocks of the prompt."""
        return tuple(block_hashes(tuple(self.fields["prompt"])))

    @property
    def priority(self) -> int:
        """Dynamo's hint, larger is more: what its router passes on to the engine."""
        hints: dict[str, int] = (self.fields.get("nvext") or {}).get("agent_hints") or {}
        return hints.get("priority", 0)


class RoutingPolicy(Protocol):
    """Chooses a replica for each request."""

    def choose(self, wire: Wire, /) -> Replica:
        """The replica that gets the request."""

    def ended(self, wire: Wire, /) -> None:
        """The request has ended, in whichever way."""


@runtime_checkable
class Admitting(Protocol):
    """A policy that may hold a request back before it chooses."""

    async def admit(self, wire: Wire, /) -> None:
        """Return when the request may go on."""


class RoundRobin:
    """One after the other."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._turns = cycle(replicas)

    def choose(self, _: Wire) -> Replica:
        return next(self._turns)

    def ended(self, _: Wire) -> None:
        return


class ConsistentHash:
    """By a header that names session, user or tenant; without one by the whole body."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        points = (
            (_point(f"{replica.name}#{number}".encode()), place)
            for place, replica in enumerate(replicas)
            for number in range(_VIRTUAL_NODES)
        )
        self._ring = sorted(points)
        self._replicas = replicas

    def choose(self, wire: Wire) -> Replica:
        named = (wire.headers[name].encode() for name in _HEADERS if name in wire.headers)
        return self.of(next(named, wire.body))

    def of(self, key: bytes) -> Replica:
        """The replica of `key`."""
        place = bisect(self._ring, (_point(key), -1)) % len(self._ring)
        return self._replicas[self._ring[place][1]]

    def ended(self, _: Wire) -> None:
        return


class CacheAware:
    """By the longest prompt prefix that it has sent to a replica before. It sees no evictions."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas
        self._sent: dict[str, set[int]] = {replica.name: set() for replica in replicas}

    def choose(self, wire: Wire) -> Replica:
        chosen = self._chosen(wire.blocks, len(wire.fields["prompt"]))
        self._sent[chosen.name].update(wire.blocks)
        return chosen

    def sent(self, wire: Wire, replica: Replica) -> None:
        """Remember a prompt that another policy has sent to `replica`."""
        self._sent[replica.name].update(wire.blocks)

    def _chosen(self, blocks: Sequence[int], tokens: int) -> Replica:
        loads = [replica.running for replica in self._replicas]
        if max(loads) - min(loads) > _BALANCE_ABS and max(loads) > min(loads) * _BALANCE_REL:
            return min(self._replicas, key=lambda replica: replica.running)
        matched = {replica.name: self._matched(replica, blocks) for replica in self._replicas}
        best = max(self._replicas, key=lambda replica: matched[replica.name])
        if matched[best.name] * BLOCK_TOKENS > _CACHE_THRESHOLD * tokens:
            return best
        return min(self._replicas, key=lambda replica: len(self._sent[replica.name]))

    def _matched(self, replica: Replica, blocks: Sequence[int]) -> int:
        sent = self._sent[replica.name]
        missing = (place for place, block in enumerate(blocks) if block not in sent)
        return next(missing, len(blocks))

    def ended(self, _: Wire) -> None:
        return


Binding = Literal["least_program_count", "cache_aware"]


@dataclass(slots=True)
class _Bound:
    """A program's replica, and how many of its requests are under way."""

    replica: Replica
    running: int = 0
    returns: bool = True


class Programs:
    """A program stays on its replica until it does not come back.

    A new program goes to the replica with the fewest of them (`least_program_count`), or to where
    the `cache_aware` binding sends its first prompt. Requests without a program go by the latter.
    """

    def __init__(self, replicas: Sequence[Replica], binding: Binding) -> None:
        self._replicas = replicas
        self._binding = binding
        self._cache_aware = CacheAware(replicas)
        self._bound: dict[str, _Bound] = {}

    def choose(self, wire: Wire) -> Replica:
        program = wire.program
        if program is None:
            return self._cache_aware.choose(wire)
        bound = self._bound.get(program["program_id"])
        if bound is None:
            bound = self._bound[program["program_id"]] = _Bound(self._home(wire))
        bound.running += 1
        bound.returns = program.get("expected_resume", True)
        self._cache_aware.sent(wire, bound.replica)
        return bound.replica

    def ended(self, wire: Wire) -> None:
        program = wire.program
        bound = None if program is None else self._bound.get(program["program_id"])
        if program is None or bound is None:
            return
        bound.running -= 1
        if not (bound.running or bound.returns):
            del self._bound[program["program_id"]]

    @property
    def bound(self) -> int:
        """Programs that are expected to come back, or have requests under way."""
        return len(self._bound)

    def _home(self, wire: Wire) -> Replica:
        if self._binding == "cache_aware":
            return self._cache_aware.choose(wire)
        held = [bound.replica for bound in self._bound.values()]
        return min(self._replicas, key=held.count)


class Several:
    """Routers that share nothing. A load balancer before them gives each request to the next."""

    def __init__(self, routers: Sequence[RoutingPolicy]) -> None:
        self._turns = cycle(routers)
        self._asked: dict[int, RoutingPolicy] = {}

    def choose(self, wire: Wire) -> Replica:
        router = self._asked[id(wire)] = next(self._turns)
        return router.choose(wire)

    def ended(self, wire: Wire) -> None:
        self._asked.pop(id(wire)).ended(wire)


def _point(key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest())
