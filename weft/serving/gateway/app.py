"""The endpoints of a gateway, put together as one ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as PlainResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.serving.gateway.admission import Admission
from weft.serving.gateway.chat import ChatEndpoint, served_model
from weft.serving.gateway.door import Door
from weft.serving.gateway.exchange import Exchange, Report
from weft.serving.gateway.metrics import CONTENT_TYPE, Metrics
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.people import People, PeopleEndpoints
from weft.serving.gateway.problem import Problem, Refused, problem_of
from weft.serving.gateway.served import Served

_OWN_HEADERS = ["authorization", "content-type", "x-request-id", "x-weft-timeout-ms"]


class GatewayApp:
    """An ASGI application that serves `models`, by name; with `people` what runs ask, too."""

    def __init__(
        self,
        models: Mapping[str, Served],
        options: GatewayOptions,
        report: Report | None = None,
        people: People | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._models = models
        self._admission = Admission(options.max_concurrent, options.max_waiting)
        self._metrics = Metrics(self._admission, registry)
        self._stopped = asyncio.Event()
        chat = ChatEndpoint(models, options, self._admission, self._metrics, self._stopped)
        routes = [
            Route("/v1/models", self._list, methods=["GET"]),
            Route("/v1/models/{name:path}", self._card, methods=["GET"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
            Route("/metrics", self._counted, methods=["GET"]),
        ]
        if people is not None:
            asked = PeopleEndpoints(people, options)
            routes += [
                Route("/v1/runs/{run:path}/questions", asked.questions, methods=["GET"]),
                Route("/v1/runs/{run:path}/answers", asked.answer, methods=["POST"]),
            ]
        inner = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _http_problem, Exception: _problem},
        )
        self._door = Door(inner, options, self._metrics, report)
        self._app: ASGIApp = self._door
        if options.origins:
            self._app = CORSMiddleware(
                self._door,
                allow_origins=options.origins,
                allow_methods=["GET", "POST"],
                allow_headers=_OWN_HEADERS,
                expose_headers=["x-request-id", "x-weft-run"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def drain(self, within_s: float) -> bool:
        """Refuse new requests, and wait for those inside; False when some are there still."""
        self._door.closed = True
        try:
            async with asyncio.timeout(within_s):
                await self._door.idle.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Cut off what is under way, and refuse what is new. Harmless when repeated."""
        self._door.closed = True
        self._stopped.set()

    async def _list(self, _: Request) -> JSONResponse:
        cards = [served.card() for served in self._models.values()]
        return JSONResponse({"object": "list", "data": cards})

    async def _card(self, request: Request) -> JSONResponse:
        return JSONResponse(served_model(self._models, request.path_params["name"]).card())

    async def _health(self, _: Request) -> JSONResponse:
        if self._door.closed:
            return JSONResponse({"status": "draining"}, 503)
        return JSONResponse({"status": "ok"})

    async def _counted(self, _: Request) -> PlainResponse:
        return PlainResponse(self._metrics.text(), media_type=CONTENT_TYPE)


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = str(error.detail)
    if error.status_code == 404:
        said = "there is nothing here; the address of the API ends in /v1"
    refused = Refused(Problem(error.status_code, said))
    answer = await _problem(request, refused)
    answer.headers.update(error.headers or {})
    return answer


async def _problem(request: Request, error: Exception) -> JSONResponse:
    problem = problem_of(error, Exchange.of(request.scope).id)
    return JSONResponse(problem.body(), problem.status, problem.headers())
