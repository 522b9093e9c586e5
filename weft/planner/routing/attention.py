"""Who is heard: the monitors of one errand, what each last said, and which signal is strongest.

Runs the monitors beside the work. Decides no way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from weft.planner.routing.goal import Goal
from weft.planner.routing.monitor import Monitor, Scene, Signal

_LEAST_S = 0.001


class Attention:
    """What `monitors` say. `news` is called when that has changed, `log` with lines for people."""

    def __init__(
        self, monitors: Sequence[Monitor], news: Callable[[], None], log: Callable[[str], None]
    ) -> None:
        self._monitors = monitors
        self._news = news
        self._log = log
        self._said: list[tuple[Signal, ...]] = [() for _ in monitors]
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

    def _all(self) -> Iterator[Signal]:
        for said in self._said:
            yield from said

    def _strongest(self, signals: Iterator[Signal]) -> Signal | None:
        return max(signals, key=attrgetter("priority"), default=None)

    # -- looking -------------------------------------------------------------------------------

    def happened(self) -> None:
        """There is something new to look at."""
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

    async def watch(self, index: int, scene: Callable[[], Scene]) -> None:
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

    def _hear(self, index: int, said: tuple[Signal, ...]) -> None:
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
