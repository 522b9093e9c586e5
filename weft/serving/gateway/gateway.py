"""A gateway from its socket to its end: binds, serves, drains."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from itertools import pairwise

from prometheus_client import CollectorRegistry

from weft.core.errors import DuplicateName
from weft.serving.asgi import QuietServer, bound_socket, server_config, serving
from weft.serving.gateway.app import GatewayApp, RunQuestions, RunRoutes
from weft.serving.gateway.completion import ServedModel
from weft.serving.gateway.exchange import Report
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.runs import RunSubmissions

_SPARE_CONNECTIONS = 1024
_CLOSING_S = 5


class Gateway:
    """Serves `models` over HTTP. The caller closes the clients, after `serve` has ended.

        gateway = Gateway([ServedModel("draft", client)], GatewayOptions(port=0))
        gateway.bind()
        await gateway.serve(lambda: print(gateway.address))

    `report` receives every finished exchange; `people` has the questions of recorded runs,
    `runs` their queue; `check` raises a `WeftError` when their journal cannot be used. `registry`
    contains further metrics for `/metrics`. Raises: `DuplicateName`.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        options: GatewayOptions | None = None,
        report: Report | None = None,
        people: RunQuestions | None = None,
        registry: CollectorRegistry | None = None,
        runs: RunSubmissions | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._models = {served.name: served for served in models}
        if len(self._models) < len(models):
            names = sorted(served.name for served in models)
            twice = next(a for a, b in pairwise(names) if a == b)
            raise DuplicateName(f"two models are called {twice!r}", hint="rename one")
        self._options = options or GatewayOptions()
        self._report = report
        self._run_routes = RunRoutes(people, runs, check)
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
        """Take the port; clients connect once it serves. Raises: `ServeError`."""
        self._socket = bound_socket(self._options.host, self._options.port)

    def close(self) -> None:
        """Release the port. Harmless when repeated, and after `serve`."""
        if self._socket is not None:
            self._socket.close()

    def drain(self) -> None:
        """Refuse new requests and finish running ones. Call it in the loop's thread."""
        self._draining.set()

    async def serve(self, ready: Callable[[], None] | None = None) -> bool:
        """Serve until drained; `ready` is called when clients can connect.

        Returns: False when answers had to be cut off. Raises: `ServeError`.
        """
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        app = GatewayApp(
            self._models, self._options, self._report, self._run_routes, self._registry
        )
        options = self._options
        config = server_config(
            app,
            header_timeout_s=options.header_timeout_s,
            write_timeout_s=options.write_timeout_s,
            lifespan="off",
            timeout_keep_alive=max(1, int(options.idle_timeout_s)),
            timeout_graceful_shutdown=_CLOSING_S,
            limit_concurrency=options.max_concurrent + options.max_waiting + _SPARE_CONNECTIONS,
        )
        server = QuietServer(config, ready)
        async with serving(server, self._socket, self._draining, app.stop) as running:
            return running.done() or await app.drain(options.drain_s)
