"""Between a client and a PostgreSQL server: ends a connection at a chosen message.

`before` it reaches the server, or `after` the server has done it but before the client hears so.
"""

from __future__ import annotations

import selectors
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from tests.postgres_server import PostgresServer

SOCKET = ".s.PGSQL.5432"
_READY = b"Z\x00\x00\x00\x05"
_AT_ONCE = 1 << 20


class PostgresProxy:
    """Leads to the server in `server`, through the socket in `folder`. `cuts` counts its cuts."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.cuts = 0
        self._server = str(server / SOCKET)
        self._armed: tuple[Literal["before", "after"], bytes] | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, when: Literal["before", "after"], message: bytes) -> None:
        """End the next connection through which a client sends `message`."""
        self._armed = (when, message)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            with selectors.DefaultSelector() as both:
                both.register(client, selectors.EVENT_READ, server)
                both.register(server, selectors.EVENT_READ, client)
                while all(self._passed(key, server) for key, _ in both.select()):
                    pass

    def _passed(self, key: selectors.SelectorKey, server: socket.socket) -> bool:
        """Pass on what has come; false at the end of the connection."""
        source, sink = key.fileobj, key.data
        assert isinstance(source, socket.socket)
        data = source.recv(_AT_ONCE)
        armed = self._armed
        if sink is server and armed is not None and armed[1] in data:
            self._armed = None
            self.cuts += 1
            if armed[0] == "after":
                server.sendall(data)
                while _READY not in server.recv(_AT_ONCE)[-6:]:
                    pass
            return False
        sink.sendall(data)
        return bool(data)


@contextmanager
def postgres_proxy(server: PostgresServer) -> Iterator[PostgresProxy]:
    with tempfile.TemporaryDirectory(prefix="weft-proxy-") as folder:
        proxy = PostgresProxy(Path(folder), server.folder)
        try:
            yield proxy
        finally:
            proxy.close()
