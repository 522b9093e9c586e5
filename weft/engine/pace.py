"""How fast the node functions of a run make new nodes: a slice in each pass of the event loop."""

from __future__ import annotations

import asyncio
from collections import deque

from weft.engine.slices import SLICE


class Pace:
    """At most `SLICE` nodes are made in one pass of the event loop, by all node functions of a run.

    Those that come too late wait in the order in which they came.
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
