"""The queue of requests that wait for a place among the answers under way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.serving.gateway.problem import ApiProblem, RequestRefused

_COME_BACK_S = 1.0


class AdmissionQueue:
    """`places` answers at once, first come first served; at most `waiting` requests wait."""

    def __init__(self, places: int, waiting: int) -> None:
        self._places = places
        self._free = places
        self._most_waiting = waiting
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def running(self) -> int:
        """Places taken."""
        return self._places - self._free

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    @asynccontextmanager
    async def admitted(self, places: int = 1) -> AsyncIterator[None]:
        """Hold `places` while inside. Raises: `RequestRefused` with 400 or 429."""
        if places > self._places:
            raise RequestRefused(
                ApiProblem(400, f"at most {self._places} choices at once", param="n")
            )
        await self._take(places)
        try:
            yield
        finally:
            self._give(places)

    async def _take(self, places: int) -> None:
        if not self._queue and self._free >= places:
            self._free -= places
            return
        if len(self._queue) >= self._most_waiting:
            message = "too many requests are waiting; come back later"
            problem = ApiProblem(429, message, "rate_limit_error", "overloaded", None, _COME_BACK_S)
            raise RequestRefused(problem)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (places, turn)
        self._queue.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._queue = deque(other for other in self._queue if other is not entry)
                self._give(0)
            else:  # its turn had just come
                self._give(places)
            raise

    def _give(self, places: int) -> None:
        self._free += places
        while self._queue and self._queue[0][0] <= self._free:
            wanted, turn = self._queue.popleft()
            if not turn.cancelled():
                self._free -= wanted
                turn.set_result(None)
