"""Gives the ends of calls that are played at once in recorded order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from weft.core.ports import Clock
from weft.durability.calls.cassette import Due

_PATIENCE_S: Final = 1.0
_IDLE_S: Final = 1e-6
"""A `FakeClock` moves so far only where the program has nothing left to do."""


@dataclass(order=True, slots=True)
class Turn:
    """The turn of a call's end. `has_come`: the call waits for it, or needs it no longer."""

    due: Due
    has_come: bool = field(default=False, compare=False)
    given: asyncio.Event = field(default_factory=asyncio.Event, compare=False)


class Turns:
    """The turns of the calls that are being played.

    The ends of a group are given together, and those of the next group after what the program did
    on them. An end waits for each of these calls that ended before it in the record, but at most a
    second by `clock`: a changed program may never read on in the other.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Turn] = []
        self._is_scheduled = False

    @contextmanager
    def begin(self, due: Due) -> Iterator[Turn]:
        """The turn of a call that is played within the block."""
        turn = Turn(due)
        heappush(self._heap, turn)
        try:
            yield turn
        finally:
            self._come(turn)

    async def wait(self, turn: Turn) -> None:
        """Wait until the end of the call may be given; its second has come."""
        self._come(turn)
        timer = self._clock.call_later(_PATIENCE_S, turn.given.set)
        try:
            await turn.given.wait()
        finally:
            timer.cancel()

    def _come(self, turn: Turn) -> None:
        turn.has_come = True
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(_IDLE_S, self._give)

    def _give(self) -> None:
        self._is_scheduled = False
        group = self._heap[0].due.group if self._heap else 0
        while self._heap and self._heap[0].has_come and self._heap[0].due.group == group:
            turn = heappop(self._heap)
            turn.given.set()
        if self._heap and self._heap[0].has_come:
            self._come(self._heap[0])
