"""A gateway from its socket to its end: binds, serves, drains. Knows no endpoint."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import cast

from prometheus_client import CollectorRegistry
from uvicorn import Config

from weft.core.errors import DuplicateName, ServeError
from weft.serving.asgi import PatientConnection, QuietServer
from weft.serving.gateway.app import GatewayApp, RunQuestions
from weft.serving.gateway.completion import ServedModel
from weft.serving.gateway.exchange import Report
from weft.serving.gateway.options import GatewayOptions

_LONGEST_HEADERS = 64 * 1024
_SPARE_CONNECTIONS = 1024
_CLOSING_S = 5.0


class Gateway:
    """Serves `models` over HTTP. Whoever makes the clients closes them, after `serve` has ended.

        gateway = Gateway([Served("draft", client)], GatewayOptions(port=0))
        gateway.bind()
        await gateway.serve(lambda: print(gateway.address))

    `report` is told of every request that has ended; `people` has what recorded runs ask;
    `registry` has what else `/metrics` tells. Raises: `DuplicateName`.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        options: GatewayOptions | None = None,
        report: Report | None = None,
        people: RunQuestions | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._models = {served.name: served for served in models}
        if len(self._models) < len(models):
            names = sorted(served.name for served in models)
            twice = next(a for a, b in pairwise(names) if a == b)
            raise DuplicateName(f"two models are called {twice!r}", hint="rename one")
        self._options = options or GatewayOptions()
        self._report = report
        self._people = people
        self._registry = registry
        self._socket: socket.socket | None = None
        self._draining = asyncio.Event()

    @property
    def address(self) -> str:
        """`http://host:port`, without the `/v1`. Only after `bind`."""
        assert self._socket is not None, "bind first"
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def bind(self) -> None:
        """Take the port; nobody can connect before `serve`. Raises: `ServeError`."""
        host, port = self._options.host, self._options.port
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(where)
        except OSError as error:
            self.close()
            hint = "choose another port, or --port 0 for any that is free"
            said = f"cannot listen on {host}:{port}: {error.strerror}"
            raise ServeError(said, hint=hint) from None

    def close(self) -> None:
        """Give the port back. Harmless when repeated, and after `serve`."""
        if self._socket is not None:
            self._socket.close()

    def drain(self) -> None:
        """Begin the end: refuse what is new, finish what is under way. In the loop's thread."""
        self._draining.set()

    async def serve(self, ready: Callable[[], None] | None = None) -> bool:
        """Serve until drained; `ready` is called when clients can connect.

        Returns False when answers had to be cut off. Raises: `ServeError`.
        """
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        app = GatewayApp(self._models, self._options, self._report, self._people, self._registry)
        server = QuietServer(self._config(app), ready)
        serving = asyncio.create_task(server.serve(sockets=[self._socket]))
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait((serving, draining), return_when=asyncio.FIRST_COMPLETED)
            whole = serving.done() or await app.drain(self._options.drain_s)
        finally:
            app.stop()
            server.should_exit = True
            draining.cancel()
            await asyncio.wait((serving, draining))
            self.close()
        serving.result()
        return whole

    def _config(self, app: GatewayApp) -> Config:
        options = self._options
        connection = partial(
            PatientConnection,
            header_timeout_s=options.header_timeout_s,
            write_timeout_s=options.write_timeout_s,
        )
        # uvicorn only ever calls it.
        factory = cast("type[asyncio.Protocol]", connection)
        return Config(
            app,
            http=factory,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, int(options.idle_timeout_s)),
            timeout_graceful_shutdown=int(_CLOSING_S),
            limit_concurrency=options.max_concurrent + options.max_waiting + _SPARE_CONNECTIONS,
            h11_max_incomplete_event_size=_LONGEST_HEADERS,
        )
