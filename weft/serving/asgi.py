"""An ASGI application on an address of this machine, from socket to end. Knows no routes."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

from starlette.types import ASGIApp
from uvicorn import Config, Server

from weft.core.errors import ServeError, SpecError
from weft.serving.connection import PatientConnection
from weft.serving.health import Health

_LONGEST_HEADERS = 64 * 1024
_MOST_CONNECTIONS = 512
_HEADERS_S = 20.0
_WRITE_S = 60.0
_CLOSING_S = 3
_LAST_PORT = 65535


class Hosted:
    """Takes the port at once; nobody can connect before `serve`.

    Raises: `SpecError` for an address that others can reach, or no port, `ServeError` when the port
    is taken.
    """

    def __init__(self, host: str, port: int) -> None:
        if not _is_loopback(host):
            hint = "stay on 127.0.0.1: there are no keys that would keep others out"
            raise SpecError(f"others can reach {host or 'every address'}", hint=hint)
        if not 0 <= port <= _LAST_PORT:  # the system would count on from 0
            raise SpecError(f"there is no port {port}", hint="0 lets the system choose")
        self._host = host
        self._stopped = asyncio.Event()
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(where)
        except (OSError, OverflowError) as error:
            hint = "choose another port, or 0 for any that is free"
            raise ServeError(f"cannot listen on {host}:{port}: {error}", hint=hint) from None

    @property
    def port(self) -> int:
        """The port it has."""
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """`http://host:port`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    async def serve(self, app: ASGIApp, ready: Callable[[], None] | None = None) -> None:
        """Serve `app`, lifespan included, until `stop`; `ready` is called when clients can connect.

        Raises: `ServeError` when the application does not start.
        """
        server = QuietServer(self._config(app), ready)
        serving = asyncio.create_task(server.serve(sockets=[self._socket]))
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            stopped.cancel()
            await asyncio.wait((serving, stopped))
            self._socket.close()
        serving.result()
        if not server.started:
            raise ServeError("the application did not start")

    def stop(self) -> None:
        """End `serve` soon. In the loop's thread."""
        self._stopped.set()

    def _config(self, app: ASGIApp) -> Config:
        connection = partial(
            PatientConnection, header_timeout_s=_HEADERS_S, write_timeout_s=_WRITE_S
        )
        return Config(
            Health(app),
            http=cast("type[asyncio.Protocol]", connection),  # uvicorn only ever calls it
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_CLOSING_S,
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_LONGEST_HEADERS,
        )


class QuietServer(Server):
    """uvicorn's, which leaves signals to whoever runs it and says when it listens."""

    def __init__(self, config: Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready is not None and self.started:
            self._ready()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
