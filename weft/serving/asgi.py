"""An ASGI application on an address of this machine, from socket to end.

uvicorn limits neither the time for headers nor that of clients that do not read: a few clients
could hold a server's connections for ever. `PatientConnection` adds both limits.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import h11
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from weft.core.errors import ServeError, SpecError
from weft.core.hosts import is_loopback


class PatientConnection(H11Protocol):
    """A connection with a time limit for headers, and one for reading what was written."""

    def __init__(
        self, *args: Any, header_timeout_s: float, write_timeout_s: float, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._header_limit = _TimeLimit(header_timeout_s)
        self._read_limit = _TimeLimit(write_timeout_s)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._header_limit.begin(self.loop, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_limit.end()
        self._read_limit.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # After an early answer the rest of the request is read, so that the client gets the answer.
        unread = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if unread or self.conn.their_state is h11.IDLE:
            self._header_limit.begin(self.loop, self.transport.abort)
        else:
            self._header_limit.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_limit.begin(self.loop, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read_limit.end()


class _TimeLimit:
    """A time limit that begins once and ends."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[], None]) -> None:
        """Call `on_timeout` when the time is over. No effect when it has begun."""
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, on_timeout)

    def end(self) -> None:
        """Stop the time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_PATH = "/healthz"


class HealthEndpoint:
    """Answers `GET /healthz` before `app`, without a key; other requests go to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_health = scope["type"] == "http" and scope["path"] == _PATH and scope["method"] == "GET"
        app = JSONResponse({"status": "ok"}) if is_health else self._app
        await app(scope, receive, send)


_MAX_HEADER_BYTES = 64 * 1024
_MAX_CONNECTIONS = 512
_HEADERS_S = 20.0
_WRITE_S = 60.0
_CLOSING_S = 3
_LAST_PORT = 65535


class LoopbackServer:
    """A server on a loopback address. Takes the port at once; clients connect once it serves.

    Raises: `SpecError` for an address that others can reach or an invalid port, `ServeError` when
    the port is taken.
    """

    def __init__(self, host: str, port: int) -> None:
        if not is_loopback(host):
            hint = "stay on 127.0.0.1: there are no keys that would keep others out"
            raise SpecError(f"others can reach {host or 'every address'}", hint=hint)
        if not 0 <= port <= _LAST_PORT:  # the system would take it modulo 65536
            raise SpecError(f"there is no port {port}", hint="0 lets the system choose")
        self._host = host
        self._stopped = asyncio.Event()
        self._socket = bound_socket(host, port)

    @property
    def port(self) -> int:
        """The port."""
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """`http://host:port`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    async def serve(self, app: ASGIApp, ready: Callable[[], None] | None = None) -> None:
        """Serve `app`, with lifespan, until `stop`; `ready` is called when clients can connect.

        Raises: `ServeError` when the application does not start.
        """
        config = server_config(
            HealthEndpoint(app),
            header_timeout_s=_HEADERS_S,
            write_timeout_s=_WRITE_S,
            lifespan="on",
            timeout_graceful_shutdown=_CLOSING_S,
            limit_concurrency=_MAX_CONNECTIONS,
        )
        server = QuietServer(config, ready)
        async with serving(server, self._socket, self._stopped):
            pass
        if not server.started:
            raise ServeError("the application did not start")

    def stop(self) -> None:
        """End `serve` soon. Call it in the loop's thread."""
        self._stopped.set()


def bound_socket(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Raises: `ServeError` when the port is taken."""
    made: socket.socket | None = None
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
    except (OSError, OverflowError) as error:
        if made is not None:
            made.close()
        why = getattr(error, "strerror", None) or error
        hint = "choose another port, or 0 for any that is free"
        raise ServeError(f"cannot listen on {host}:{port}: {why}", hint=hint) from None
    return made


def server_config(
    app: ASGIApp, *, header_timeout_s: float, write_timeout_s: float, **more: Any
) -> Config:
    """The quiet uvicorn config for HTTP over patient connections; `more` are uvicorn's settings."""
    connection = partial(
        PatientConnection, header_timeout_s=header_timeout_s, write_timeout_s=write_timeout_s
    )
    return Config(
        app,
        http=cast("type[asyncio.Protocol]", connection),  # uvicorn only ever calls it
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        **more,
    )


@asynccontextmanager
async def serving(
    server: Server,
    bound: socket.socket,
    stopped: asyncio.Event,
    end: Callable[[], None] = lambda: None,
) -> AsyncIterator[asyncio.Task[None]]:
    """Enters when the server has ended or `stopped` is set; leaving ends it and closes the socket.

    Leaving calls `end` first. Raises: the error of the server.
    """
    running = asyncio.create_task(server.serve(sockets=[bound]))
    stop = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((running, stop), return_when=asyncio.FIRST_COMPLETED)
        yield running
    finally:
        end()
        server.should_exit = True
        stop.cancel()
        await asyncio.wait((running, stop))
        bound.close()
    running.result()


class QuietServer(Server):
    """A uvicorn server that handles no signals and calls `ready` when it listens."""

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
