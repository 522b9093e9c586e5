"""The page's server from its socket to its end. Knows no endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from weft.core.ports.journal import Journal
from weft.serving.asgi import Hosted
from weft.serving.ui.app import application
from weft.serving.ui.changes import POLL_S, Changes
from weft.serving.ui.key import Key
from weft.serving.ui.readers import RunReaders

_HOST: Final = "127.0.0.1"


class UiServer:
    """Shows the runs of `journal` to who has the `url`. Whoever opened the journal closes it.

        server = UiServer(journal, readers)
        await server.serve(lambda: print(server.url))

    `readers` read the runs for it; `port` 0 is any that is free;
    `poll_s` is how often it looks for news while a page is open.
    Raises: `ServeError` when the port is taken.
    """

    def __init__(
        self, journal: Journal, readers: RunReaders, port: int = 0, *, poll_s: float = POLL_S
    ) -> None:
        self._journal = journal
        self._readers = readers
        self._hosted = Hosted(_HOST, port)
        self._changes = Changes(journal, poll_s)
        self._key = Key()

    @property
    def address(self) -> str:
        """`http://host:port`, without the key."""
        return self._hosted.address

    @property
    def url(self) -> str:
        """The address with the key. The part after `#` is never sent: it reaches no log."""
        return f"{self.address}/#key={self._key.text}"

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until `stop`; `ready` is called when pages can connect."""
        app = application(self._journal, self._readers, self._changes, self._key, self._hosted.port)
        watching = asyncio.create_task(self._changes.watch())
        try:
            await self._hosted.serve(app, ready)
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        if not watching.cancelled():
            watching.result()

    def stop(self) -> None:
        """End `serve` soon. In the loop's thread."""
        self._changes.stop()
        self._hosted.stop()
