"""Work on many nodes in slices, so that it does not block the run.

One scheduling step takes in, ends and starts at most `SLICE` nodes each. Node functions make at
most `SLICE` nodes in one pass of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
SLICE: Final = 500
UNLIMITED: Final = float("inf")


def slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """`items` in order, at most `SLICE` at a time."""
    if len(items) <= SLICE:
        yield items
        return
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]


def finish(steps: Generator[None, None, T]) -> T:
    """The result of `steps`, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class ExpansionPacer:
    """Limits the node functions of a run to `SLICE` new nodes per pass of the event loop.

    Callers beyond the limit wait in order of arrival.
    """

    def __init__(self) -> None:
        self._left = SLICE
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewal_is_due = False

    async def take(self, count: int) -> None:
        """Wait for this node function's share of a pass, in which it makes `count` nodes."""
        if self._left <= 0 or self._waiting:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # it was its turn: the next one takes it
                raise
        self._left -= count
        self._renew_soon()
        self._wake()

    def _wake(self) -> None:
        while self._left > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _renew_soon(self) -> None:
        if not self._renewal_is_due:
            self._renewal_is_due = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._renewal_is_due = False
        self._left = SLICE
        self._wake()
