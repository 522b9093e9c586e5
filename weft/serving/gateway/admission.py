"""The queue of requests that wait for a slot."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.serving.gateway.problem import ApiProblem, RequestRefused

_RETRY_S = 1.0


class AdmissionQueue:
    """Admits `slots` answers at once, first come first served; at most `waiting` requests wait."""

    def __init__(self, slots: int, waiting: int) -> None:
        self._slots = slots
        self._free = slots
        self._max_waiting = waiting
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def running(self) -> int:
        """The slots taken."""
        return self._slots - self._free

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    @asynccontextmanager
    async def admitted(self, slots: int = 1) -> AsyncIterator[None]:
        """Take `slots` while inside. Raises: `RequestRefused` with 400 or 429."""
        if slots > self._slots:
            raise RequestRefused(
                ApiProblem(400, f"at most {self._slots} choices at once", param="n")
            )
        await self._take(slots)
        try:
            yield
        finally:
            self._give(slots)

    async def _take(self, slots: int) -> None:
        if not self._queue and self._free >= slots:
            self._free -= slots
            return
        if len(self._queue) >= self._max_waiting:
            message = "too many requests are waiting; come back later"
            problem = ApiProblem(429, message, "rate_limit_error", "overloaded", None, _RETRY_S)
            raise RequestRefused(problem)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (slots, turn)
        self._queue.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._queue = deque(other for other in self._queue if other is not entry)
                self._give(0)
            else:  # it was admitted just now
                self._give(slots)
            raise

    def _give(self, slots: int) -> None:
        self._free += slots
        while self._queue and self._queue[0][0] <= self._free:
            wanted, turn = self._queue.popleft()
            if not turn.cancelled():
                self._free -= wanted
                turn.set_result(None)
