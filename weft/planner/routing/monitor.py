"""The port of monitors, which observe a route in parallel to its calls, and a pool of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import attrgetter
from typing import Any, Protocol

from weft.core.errors import Failure
from weft.planner.routing.goal import Goal


@dataclass(frozen=True, slots=True)
class RoutedCall:
    """A call that ended. `failure` is None where it succeeded."""

    tool: str
    latency_s: float
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class RouterState:
    """The state of a route: the goal, the values so far, the ended calls, the next tools."""

    goal: Goal
    values: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[RoutedCall, ...] = ()
    ahead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorSignal:
    """A signal of a monitor. Of several on one subject, the one of the highest `priority` counts.

    tool, health   the tool is healthy (1), costs that many times more, or is closed (`DOWN`)
    tool, risk     the risk of a call
    goal           a new goal

    Raises: `ValueError` for numbers out of range.
    """

    priority: float
    reason: str
    tool: str = ""
    health: float | None = None
    risk: float | None = None
    goal: Goal | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.priority):
            raise ValueError(f"a priority is a finite number, got {self.priority}")
        if self.health is not None and not self.health > 0:
            raise ValueError(f"a tool's health is above 0, got {self.health}")
        if self.risk is not None and not (isfinite(self.risk) and self.risk >= 0):
            raise ValueError(f"a risk is a finite number of at least 0, got {self.risk}")


class RouteMonitor(Protocol):
    """Observes a route: at its start, after every call, and every `every_s` seconds if set.

    All monitors run concurrently with the calls. Signals are valid until the monitor's next ones. A
    monitor that raises is stopped.
    """

    @property
    def name(self) -> str:
        """The name in logs."""

    @property
    def every_s(self) -> float | None:
        """The longest time between two observations; None: only after changes."""

    async def look(self, state: RouterState) -> Sequence[MonitorSignal]:
        """The signals for `state`."""


_LEAST_S = 0.001


class MonitorPool:
    """The signals of `monitors`. `changed` is called when they change, `log` with text lines."""

    def __init__(
        self,
        monitors: Sequence[RouteMonitor],
        changed: Callable[[], None],
        log: Callable[[str], None],
    ) -> None:
        self._monitors = monitors
        self._changed = changed
        self._log = log
        self._signals: list[tuple[MonitorSignal, ...]] = [() for _ in monitors]
        self._observed = dict.fromkeys(range(len(monitors)), -1)
        self._version = 0
        self._happened = asyncio.Event()
        self._evaluated = asyncio.Event()

    # -- the strongest signal ------------------------------------------------------------------

    def health(self, tool: str) -> float:
        """The factor on the price of `tool`; 1 without a signal."""
        about = (s for s in self._all() if s.tool == tool and s.health is not None)
        strongest = self._strongest(about)
        return 1.0 if strongest is None or strongest.health is None else strongest.health

    def risk(self, tool: str) -> float | None:
        """The risk of `tool`; None without a signal."""
        strongest = self._strongest(s for s in self._all() if s.tool == tool and s.risk is not None)
        return None if strongest is None else strongest.risk

    def goal(self) -> tuple[Goal, str] | None:
        """The new goal, and the reason; None without a signal."""
        strongest = self._strongest(s for s in self._all() if s.goal is not None)
        if strongest is None or strongest.goal is None:
            return None
        return strongest.goal, strongest.reason

    def why(self, tool: str) -> str:
        """The reason of the strongest signal about `tool`, or empty."""
        strongest = self._strongest(s for s in self._all() if s.tool == tool)
        return "" if strongest is None else strongest.reason

    def _all(self) -> Iterator[MonitorSignal]:
        for signals in self._signals:
            yield from signals

    def _strongest(self, signals: Iterator[MonitorSignal]) -> MonitorSignal | None:
        return max(signals, key=attrgetter("priority"), default=None)

    # -- looking -------------------------------------------------------------------------------

    def state_changed(self) -> None:
        self._version += 1
        self._happened = _wake(self._happened)

    async def wait_settled(self, patience_s: float) -> None:
        """Wait until every monitor has observed the latest state, at most `patience_s` seconds."""
        try:
            async with asyncio.timeout(patience_s):
                while any(observed < self._version for observed in self._observed.values()):
                    await self._evaluated.wait()
        except TimeoutError:
            return

    async def watch(self, index: int, state: Callable[[], RouterState]) -> None:
        """Run a monitor repeatedly, until it raises or is cancelled."""
        monitor = self._monitors[index]
        while True:
            observed, happened = self._version, self._happened
            try:
                signals = tuple(await monitor.look(state()))
            except Exception as error:  # noqa: BLE001 - a monitor must not end the route
                self._log(f"the monitor {monitor.name!r} failed and is heard no more: {error!r}")
                self._update(index, ())
                del self._observed[index]
                return
            self._observed[index] = observed
            self._update(index, signals)
            await _wait(happened, monitor.every_s)

    def _update(self, index: int, signals: tuple[MonitorSignal, ...]) -> None:
        if signals != self._signals[index]:
            new = self._strongest(iter(signals))
            if new is not None:
                about = f"{new.tool}: " if new.tool else ""
                self._log(f"{self._monitors[index].name}: {about}{new.reason}")
            self._signals[index] = signals
            self._changed()
        self._evaluated = _wake(self._evaluated)


def _wake(event: asyncio.Event) -> asyncio.Event:
    """Set `event`, and return the next one to wait for."""
    event.set()
    return asyncio.Event()


async def _wait(event: asyncio.Event, at_most_s: float | None) -> None:
    try:
        async with asyncio.timeout(None if at_most_s is None else max(_LEAST_S, at_most_s)):
            await event.wait()
    except TimeoutError:
        return
