"""The heartbeat of a worker: its entry in the journal, renewed while it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from weft.core.errors import StoreError
from weft.core.ports import Clock
from weft.core.ports.queue import RunQueue, WorkerEntry

LEASE_S: Final = 20.0
"""Seconds for which a worker counts as alive after a heartbeat."""
_BEATS: Final = 4


class WorkerHeartbeat:
    """Renews a worker's entry four times within `lease_s`.

    A journal that cannot be reached is tried again at the next beat: the worker itself reports it.
    """

    def __init__(
        self, queue: RunQueue, entry: Callable[[], WorkerEntry], lease_s: float, clock: Clock
    ) -> None:
        self._queue = queue
        self._entry = entry
        self._lease_s = lease_s
        self._clock = clock
        self._beating: asyncio.Future[None] | None = None

    async def beat(self) -> None:
        """Renew the entry once."""
        call = asyncio.to_thread(self._queue.put_worker, self._entry(), self._lease_s)
        self._beating = asyncio.ensure_future(call)
        with suppress(StoreError):
            await asyncio.shield(self._beating)

    async def keep_beating(self) -> None:
        """Renew the entry until cancelled."""
        while True:
            await self._clock.sleep(self._lease_s / _BEATS)
            await self.beat()

    async def leave(self) -> None:
        """Remove the entry; where that fails, it expires."""
        if self._beating is not None:  # a thread cannot be cancelled, and must not write after this
            await asyncio.wait([self._beating])
            self._beating.exception()  # has been looked at
        with suppress(StoreError):
            await asyncio.to_thread(self._queue.remove_worker, self._entry().id)
