"""The middleware around every endpoint: request ids, admission, headers, metrics, reports.

Web pages must not drive a gateway on a user's machine. So a browser's origin has to be listed, and
on a loopback address the host too (against DNS rebinding).
"""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.core.call_context import set_trace_headers
from weft.serving.gateway.exchange import GatewayExchange, GatewayMetrics, Report
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import ApiProblem, RequestRefused, problem_of
from weft.serving.gateway.reply import GatewayResponse

_OPEN = frozenset({"/healthz", "/readyz"})
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_OWN_SITE = frozenset({"same-origin", "none"})
_DRAINING = ApiProblem(
    503, "the gateway is shutting down", "server_error", "shutting_down", None, 1.0
)


class AdmissionMiddleware:
    """ASGI middleware. `idle` is set while no request is inside, other than probes."""

    def __init__(
        self, app: ASGIApp, options: GatewayOptions, metrics: GatewayMetrics, report: Report | None
    ) -> None:
        self._app = app
        self._options = options
        self._metrics = metrics
        self._report = report
        self._inside = 0
        self.closed = False
        self.idle = asyncio.Event()
        self.idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        scope["path"] = scope["path"].rstrip("/") or "/"
        exchange = GatewayExchange.begin(scope, headers.get("x-request-id"))
        set_trace_headers(headers)
        sending = self._sender(exchange, send)
        if exchange.path in _QUIET:
            await self._pass(scope, receive, sending, headers)
            return
        self._inside += 1
        self.idle.clear()
        try:
            await self._pass(scope, receive, sending, headers)
        finally:
            self._inside -= 1
            if not self._inside:
                self.idle.set()
            exchange.seconds = exchange.elapsed_s()
            self._metrics.ended(exchange)
            if self._report is not None:
                self._report(exchange)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        exchange = GatewayExchange.of(scope)
        try:
            self._check(exchange.path, headers)
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - nothing after this could answer
            exchange.error = exchange.error or f"{type(error).__name__}: {error}"
            if not exchange.status:
                await GatewayResponse(send).fail(problem_of(error, exchange.id))

    def _check(self, path: str, headers: Headers) -> None:
        self._check_browser(headers)
        keys = self._options.keys
        if keys is not None and path not in _OPEN:
            scheme, _, key = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not keys.admit(key.strip()):
                message = "show a key of this gateway: Authorization: Bearer KEY"
                raise RequestRefused(ApiProblem(401, message, code="invalid_api_key"))
        if self.closed and path not in _QUIET:
            raise RequestRefused(_DRAINING)

    def _check_browser(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is not None and origin not in self._options.origins:
            message = "web pages of this origin may not use the gateway (see --allow-origin)"
            raise RequestRefused(ApiProblem(403, message, code="foreign_origin"))
        if origin is None and headers.get("sec-fetch-site", "none") not in _OWN_SITE:
            message = "web pages of other sites may not use the gateway"
            raise RequestRefused(ApiProblem(403, message, code="foreign_origin"))
        host = headers.get("host", "").lower()
        name = host[: host.rindex(":")] if host.rpartition(":")[2].isdigit() else host
        if self._options.loopback and name not in _LOCAL | {self._options.host}:
            message = "this gateway is for its own machine: call it 127.0.0.1 or localhost"
            raise RequestRefused(ApiProblem(403, message, code="foreign_host"))

    def _sender(self, exchange: GatewayExchange, send: Send) -> Send:
        extra = [
            (b"x-request-id", exchange.id.encode("ascii")),
            (b"x-content-type-options", b"nosniff"),
        ]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                last = [(b"connection", b"close")] if self.closed else []
                runs = [(b"x-weft-run", run.encode("ascii")) for run in exchange.runs]
                message["headers"] = [*message.get("headers", []), *extra, *runs, *last]
            await send(message)

        return sending
