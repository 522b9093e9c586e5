"""Watchers that look at an errand beside its work, and the signals they give. Acts on nothing."""

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
    """What there is to see: what is wanted, what has been had, which calls ended, which tools are
    next on the way.
    """

    goal: Goal
    values: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[RoutedCall, ...] = ()
    ahead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorSignal:
    """What a monitor has to say. Of several about one thing, the one of most `priority` counts.

    tool, health   the tool is well (1), that much dearer than usual, or closed (`DOWN`)
    tool, risk     what may go wrong when it is called
    goal           something else is wanted now

    Raises: `ValueError` for numbers that mean nothing.
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
    """Looks at an errand, at its start, after every call, and every `every_s` seconds if set.

    All monitors of an errand look at the same time, beside the calls. What one says stays true
    until its next look. One that raises is heard no more.
    """

    @property
    def name(self) -> str:
        """What logs call it."""

    @property
    def every_s(self) -> float | None:
        """The longest time between two looks; None: only when something happened."""

    async def look(self, scene: RouterState) -> Sequence[MonitorSignal]:
        """What is to be said of `scene` now."""


_LEAST_S = 0.001


class MonitorPool:
    """What `monitors` say. `news` is called when that has changed, `log` with lines for people."""

    def __init__(
        self, monitors: Sequence[RouteMonitor], news: Callable[[], None], log: Callable[[str], None]
    ) -> None:
        self._monitors = monitors
        self._news = news
        self._log = log
        self._said: list[tuple[MonitorSignal, ...]] = [() for _ in monitors]
        self._seen = dict.fromkeys(range(len(monitors)), -1)
        self._scenes = 0
        self._happened = asyncio.Event()
        self._looked = asyncio.Event()

    # -- the strongest signal ------------------------------------------------------------------

    def health(self, tool: str) -> float:
        """How much dearer than usual `tool` is; 1 when nobody says anything."""
        about = (s for s in self._all() if s.tool == tool and s.health is not None)
        strongest = self._strongest(about)
        return 1.0 if strongest is None or strongest.health is None else strongest.health

    def risk(self, tool: str) -> float | None:
        """The risk of `tool`; None when nobody says anything."""
        strongest = self._strongest(s for s in self._all() if s.tool == tool and s.risk is not None)
        return None if strongest is None else strongest.risk

    def goal(self) -> tuple[Goal, str] | None:
        """What is wanted instead, and why; None when nobody says anything."""
        strongest = self._strongest(s for s in self._all() if s.goal is not None)
        if strongest is None or strongest.goal is None:
            return None
        return strongest.goal, strongest.reason

    def why(self, tool: str) -> str:
        """The reason of the strongest signal about `tool`, or nothing."""
        strongest = self._strongest(s for s in self._all() if s.tool == tool)
        return "" if strongest is None else strongest.reason

    def _all(self) -> Iterator[MonitorSignal]:
        for said in self._said:
            yield from said

    def _strongest(self, signals: Iterator[MonitorSignal]) -> MonitorSignal | None:
        return max(signals, key=attrgetter("priority"), default=None)

    # -- looking -------------------------------------------------------------------------------

    def happened(self) -> None:
        self._scenes += 1
        self._happened = _ring(self._happened)

    async def settled(self, patience_s: float) -> None:
        """Wait until every monitor has looked at the newest scene, but no longer than that."""
        try:
            async with asyncio.timeout(patience_s):
                while any(seen < self._scenes for seen in self._seen.values()):
                    await self._looked.wait()
        except TimeoutError:
            return

    async def watch(self, index: int, scene: Callable[[], RouterState]) -> None:
        """Have that monitor look again and again. Ends when it raises, or is cancelled."""
        monitor = self._monitors[index]
        while True:
            seen, happened = self._scenes, self._happened
            try:
                said = tuple(await monitor.look(scene()))
            except Exception as error:  # noqa: BLE001 - whatever a monitor raises must not end the work
                self._log(f"the monitor {monitor.name!r} failed and is heard no more: {error!r}")
                self._hear(index, ())
                del self._seen[index]
                return
            self._seen[index] = seen
            self._hear(index, said)
            await _wait(happened, monitor.every_s)

    def _hear(self, index: int, said: tuple[MonitorSignal, ...]) -> None:
        if said != self._said[index]:
            new = self._strongest(iter(said))
            if new is not None:
                about = f"{new.tool}: " if new.tool else ""
                self._log(f"{self._monitors[index].name}: {about}{new.reason}")
            self._said[index] = said
            self._news()
        self._looked = _ring(self._looked)


def _ring(event: asyncio.Event) -> asyncio.Event:
    """Wake who waits for `event`; the event to wait for from now on."""
    event.set()
    return asyncio.Event()


async def _wait(event: asyncio.Event, at_most_s: float | None) -> None:
    try:
        async with asyncio.timeout(None if at_most_s is None else max(_LEAST_S, at_most_s)):
            await event.wait()
    except TimeoutError:
        return
