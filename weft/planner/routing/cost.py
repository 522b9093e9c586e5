"""The cost of a call, its price for a user, and statistics of past calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Final

from weft.core.ports import Clock, ResultStore
from weft.core.ports.clock import SystemClock

DOWN: Final = inf
"""The health of a tool that must not be called."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """The expected cost of one call of a tool.

    `latency_s` seconds, `money` US dollars, `reliability` the probability of success (above 0, at
    most 1), `risk` of a successful call (0: none).

    Raises: `ValueError` for what is out of range.
    """

    latency_s: float = 1.0
    money: float = 0.0
    reliability: float = 0.95
    risk: float = 0.0

    def __post_init__(self) -> None:
        for name in ("latency_s", "money", "risk"):
            _check(name, getattr(self, name))
        if not 0 < self.reliability <= 1:
            raise ValueError(
                f"reliability is a number above 0 and at most 1, got {self.reliability}"
            )


@dataclass(frozen=True, slots=True)
class RouteWeights:
    """A user's prices: of a second, of a dollar, of risk, and of any call.

    `reliability` is an exponent: 0 ignores it, 1 takes the cost of repeating until success, more
    is more cautious.

    Raises: `ValueError` for what is out of range.
    """

    latency: float = 1.0
    money: float = 10.0
    reliability: float = 1.0
    risk: float = 1.0
    call: float = 0.001

    def __post_init__(self) -> None:
        for name in ("latency", "money", "reliability", "risk", "call"):
            _check(name, getattr(self, name))

    def price(self, cost: CallCost, health: float = 1.0) -> float:
        """base x health x (1 + risk), as in Self-Healing Router (arXiv 2603.01548).

        base = (call + latency + money) / reliability: the cost until it succeeds. `health` is 1 for
        a healthy tool, more for a degraded one, `DOWN` for a closed one.
        """
        once = self.call + self.latency * cost.latency_s + self.money * cost.money
        base = once / cost.reliability**self.reliability
        return DOWN if health == DOWN else base * health * (1 + self.risk * cost.risk)


def _check(name: str, value: float) -> None:
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name} is a number of at least 0, got {value}")


PRIOR_CALLS: Final = 5.0
"""The weight of a tool's declared cost, in calls."""

HALF_LIFE_S: Final = 86_400.0
"""The half-life of a call's weight, since tools change."""

_LEAST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class CallStats:
    """Decaying counts of one tool's calls. `latency_s` is the sum over the successful calls.

    `at_s`: the time of the counts, in seconds of wall time.
    """

    successes: float = 0.0
    failures: float = 0.0
    latency_s: float = 0.0
    at_s: float = 0.0

    def faded(self, now_s: float) -> CallStats:
        """The counts, decayed until now."""
        share = 0.5 ** (max(0.0, now_s - self.at_s) / HALF_LIFE_S)
        return CallStats(
            self.successes * share, self.failures * share, self.latency_s * share, now_s
        )

    def after(self, succeeded: bool, latency_s: float) -> CallStats:
        if not succeeded:
            return CallStats(self.successes, self.failures + 1, self.latency_s, self.at_s)
        return CallStats(self.successes + 1, self.failures, self.latency_s + latency_s, self.at_s)

    def expected(self, declared: CallCost) -> CallCost:
        """`declared`, updated by these calls.

        The probability of success is the mean of a Beta distribution with the declared one as its
        prior; the latency is the mean of `PRIOR_CALLS` declared calls and the actual ones.
        """
        calls = PRIOR_CALLS + self.successes + self.failures
        reliability = (PRIOR_CALLS * declared.reliability + self.successes) / calls
        took_s = PRIOR_CALLS * declared.latency_s + self.latency_s
        latency_s = took_s / (PRIOR_CALLS + self.successes)
        return CallCost(latency_s, declared.money, max(_LEAST, reliability), declared.risk)


class ToolHistory:
    """The statistics of tools, persisted in `store`, if given, under a key for each tool.

    Several processes may share a store: each reads before it adds, and of two simultaneous updates
    of one tool the last one counts. `scope` separates tools of the same name.
    """

    def __init__(
        self, store: ResultStore | None = None, *, scope: str = "", clock: Clock | None = None
    ) -> None:
        self._store = store
        self._scope = scope
        self._clock = clock or SystemClock()
        self._tallies: dict[str, CallStats] = {}
        self._one_at_a_time = asyncio.Lock()

    async def load(self, tools: Iterable[str]) -> None:
        """Read the stored statistics of `tools`. Raises: `StoreError`."""
        for tool in tools:
            await self._read(tool)

    def expected(self, tool: str, declared: CallCost) -> CallCost:
        """The expected cost of a call of `tool`, from its declaration and its statistics."""
        tally = self._tallies.get(tool)
        return declared if tally is None else tally.faded(self._now_s()).expected(declared)

    async def note(self, tool: str, succeeded: bool, latency_s: float = 0.0) -> None:
        """Record a call of `tool`. Raises: `StoreError`; the call counts in this process anyway."""
        async with self._one_at_a_time:
            try:
                await self._read(tool)
            finally:
                before = self._tallies.get(tool, CallStats()).faded(self._now_s())
                tally = self._tallies[tool] = before.after(succeeded, latency_s)
            if self._store is not None:
                await self._store.put(self._key(tool), asdict(tally))

    async def _read(self, tool: str) -> None:
        if self._store is not None:
            entry = await self._store.get(self._key(tool))
            tally = _tally(entry.value) if entry is not None else None
            if tally is not None:
                self._tallies[tool] = tally

    def _key(self, tool: str) -> str:
        return f"weft.routing/1/{self._scope}/{tool}"

    def _now_s(self) -> float:
        return self._clock.wall().timestamp()


def _tally(value: object) -> CallStats | None:
    """The stored statistics; None for invalid data."""
    names = ("successes", "failures", "latency_s", "at_s")
    if not isinstance(value, Mapping):
        return None
    found = [value.get(name) for name in names]
    numbers = [n for n in found if isinstance(n, (int, float)) and isfinite(n) and n >= 0]
    return CallStats(*map(float, numbers)) if len(numbers) == len(names) else None
