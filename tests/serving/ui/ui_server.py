"""A page's server that really listens, in a thread of its own, and clients for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from weft.core.ports.journal import Journal
from weft.serving.ui import UiServer
from weft.testing.journal import MemoryJournal
from weft.workflow.apps.ui import READERS

PATIENCE_S = 120.0


@dataclass(frozen=True)
class House:
    """A running server."""

    server: UiServer
    address: str
    http: httpx2.Client
    stranger: httpx2.Client
    """A client without the key."""
    stop: Callable[[], None]

    @property
    def key(self) -> str:
        return self.server.url.rpartition("=")[2]

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://")

    def get(self, path: str) -> Any:
        response = self.http.get(path)
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def house(journal: Journal | None = None) -> Iterator[House]:
    """A server of `journal`, which is asked for news every hundredth of a second."""
    ready = threading.Event()
    started: list[tuple[UiServer, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        server = UiServer(journal or MemoryJournal(), READERS, poll_s=0.01)
        started.append((server, asyncio.get_running_loop()))
        await server.serve(ready.set)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    server, loop = started[0]

    def stop() -> None:
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(server.stop)

    key = server.url.rpartition("=")[2]
    base: Any = {"base_url": server.address, "trust_env": False, "timeout": PATIENCE_S}
    base["limits"] = httpx2.Limits(max_keepalive_connections=0)  # the server may close idle ones
    try:
        with (
            httpx2.Client(**base, headers={"authorization": f"Bearer {key}"}) as http,
            httpx2.Client(**base) as stranger,
        ):
            yield House(server, server.address, http, stranger, stop)
    finally:
        stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
