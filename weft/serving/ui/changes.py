"""Notifies open pages of changes to the journal, by any process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import StreamingResponse

from weft.core.errors import StoreError
from weft.core.ports.journal import Journal
from weft.serving.ui.responses import UiRefusal

POLL_S: Final = 0.15
_HEARTBEAT_S: Final = 15.0
_MOST_PAGES: Final = 64


class ChangeStream:
    """Polls the version of the journal while a page is open."""

    def __init__(self, journal: Journal, poll_s: float = POLL_S) -> None:
        self._journal = journal
        self._poll_s = poll_s
        self._pages = 0
        self._watched = asyncio.Event()
        self._changed = asyncio.Event()
        self._stopped = False

    async def watch(self) -> None:
        """Poll until cancelled. A journal that cannot be read now is polled again."""
        last: int | None = None
        while True:
            await self._watched.wait()
            try:
                version = await asyncio.to_thread(self._journal.version)
            except StoreError:
                version = None
            if version != last:
                last = version
                self._notify()
            await asyncio.sleep(self._poll_s)

    def stop(self) -> None:
        """End all streams."""
        self._stopped = True
        self._notify()

    async def stream(self, _: Request) -> StreamingResponse:
        """Server-sent events: `change` at first, and after each write."""
        if self._pages >= _MOST_PAGES:
            raise UiRefusal(503, f"{_MOST_PAGES} pages watch already", "close some of them")
        return StreamingResponse(self._events(), media_type="text/event-stream")

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _events(self) -> AsyncIterator[str]:
        self._pages += 1
        self._watched.set()
        try:
            yield "event: change\ndata:\n\n"
            while not self._stopped:
                changed = self._changed
                try:
                    await asyncio.wait_for(changed.wait(), _HEARTBEAT_S)
                except TimeoutError:
                    yield ": still here\n\n"
                else:
                    if not self._stopped:
                        yield "event: change\ndata:\n\n"
        finally:
            self._pages -= 1
            if not self._pages:
                self._watched.clear()
