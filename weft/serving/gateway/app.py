"""The endpoints of a gateway as one ASGI application, including those for human input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as PlainResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from weft.serving.gateway.admission import AdmissionQueue
from weft.serving.gateway.chat import ChatEndpoint, served_model
from weft.serving.gateway.completion import ServedModel
from weft.serving.gateway.exchange import CONTENT_TYPE, GatewayExchange, GatewayMetrics, Report
from weft.serving.gateway.json_body import read_json
from weft.serving.gateway.middleware import AdmissionMiddleware
from weft.serving.gateway.options import GatewayOptions
from weft.serving.gateway.problem import ApiProblem, RequestRefused, bad_request, problem_of
from weft.serving.gateway.readiness import Readiness
from weft.serving.gateway.runs import RunSubmissions, SubmissionEndpoints, in_thread

_LONGEST_NAME = 4096


class RunQuestions(Protocol):
    """The questions of runs. Its methods block briefly."""

    def questions(self, run: str) -> Sequence[Mapping[str, Any]]:
        """The node, question and schema of each question of a run. Raises: `UnknownReference`."""

    def answer(self, run: str, node: str, value: Any) -> bool:
        """Answer a question; true when the run continues at once, false when on its next resume.

        Raises: `UnknownReference` when the node asks nothing, `InputError` for a wrong value.
        """


class QuestionEndpoints:
    """`GET /v1/runs/{run}/questions` and `POST /v1/runs/{run}/answers`."""

    def __init__(self, people: RunQuestions, options: GatewayOptions) -> None:
        self._people = people
        self._options = options

    async def questions(self, request: Request) -> JSONResponse:
        """The questions of a run, the oldest first."""
        run = request.path_params["run"]
        found = await in_thread(self._people.questions, run)
        return JSONResponse({"object": "list", "run": run, "data": list(found)})

    async def answer(self, request: Request) -> JSONResponse:
        """Take `{"node": N, "value": V}`: 202 when it is in the journal."""
        most, within_s = self._options.max_body_bytes, self._options.body_timeout_s
        body = await read_json(request.receive, request.headers, most, within_s)
        if not isinstance(body, dict) or not isinstance(body.get("node"), str):
            raise bad_request("an answer is an object with `node` and `value`", "node")
        if "value" not in body or len(body["node"]) > _LONGEST_NAME:
            raise bad_request("an answer has a `value`", "value")
        run = request.path_params["run"]
        taken = await in_thread(self._people.answer, run, body["node"], body["value"])
        answer = {"run": run, "node": body["node"], "taken": taken}
        return JSONResponse(answer, 202)


_OWN_HEADERS = ["authorization", "content-type", "x-request-id", "x-weft-timeout-ms"]


@dataclass(frozen=True, slots=True)
class RunRoutes:
    """What a gateway offers for recorded runs.

    people   their questions
    queue    submission, and a look at each
    check    raises a `WeftError` when their journal cannot be used; blocks
    """

    people: RunQuestions | None = None
    queue: RunSubmissions | None = None
    check: Callable[[], None] | None = None

    def routes(self, options: GatewayOptions) -> list[Route]:
        """The routes below `/v1/runs`."""
        routes: list[Route] = []
        if self.people is not None:
            endpoints = QuestionEndpoints(self.people, options)
            routes += [
                Route("/v1/runs/{run:path}/questions", endpoints.questions, methods=["GET"]),
                Route("/v1/runs/{run:path}/answers", endpoints.answer, methods=["POST"]),
            ]
        if self.queue is not None:
            routes += SubmissionEndpoints(self.queue, options).routes()
        return routes


class GatewayApp:
    """An ASGI application that serves `models` by name, and what `run_routes` has of runs."""

    def __init__(
        self,
        models: Mapping[str, ServedModel],
        options: GatewayOptions,
        report: Report | None = None,
        run_routes: RunRoutes | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        routes_of_runs = run_routes or RunRoutes()
        self._readiness = Readiness(routes_of_runs.check)
        self._models = models
        self._admission = AdmissionQueue(options.max_concurrent, options.max_waiting)
        self._metrics = GatewayMetrics(self._admission, registry)
        self._stopped = asyncio.Event()
        chat = ChatEndpoint(models, options, self._admission, self._metrics, self._stopped)
        routes = [
            Route("/v1/models", self._list, methods=["GET"]),
            Route("/v1/models/{name:path}", self._card, methods=["GET"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
            Route("/metrics", self._metrics_text, methods=["GET"]),
        ]
        routes += routes_of_runs.routes(options)
        inner = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _http_problem, Exception: _problem},
        )
        self._middleware = AdmissionMiddleware(inner, options, self._metrics, report)
        self._app: ASGIApp = self._middleware
        if options.origins:
            self._app = CORSMiddleware(
                self._middleware,
                allow_origins=options.origins,
                allow_methods=["GET", "POST"],
                allow_headers=_OWN_HEADERS,
                expose_headers=["x-request-id", "x-weft-run"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def drain(self, within_s: float) -> bool:
        """Refuse new requests, and wait for running ones; False when the time is over."""
        self._middleware.closed = True
        try:
            async with asyncio.timeout(within_s):
                await self._middleware.idle.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Cut off running requests, and refuse new ones. Harmless when repeated."""
        self._middleware.closed = True
        self._stopped.set()

    async def _list(self, _: Request) -> JSONResponse:
        cards = [served.card() for served in self._models.values()]
        return JSONResponse({"object": "list", "data": cards})

    async def _card(self, request: Request) -> JSONResponse:
        return JSONResponse(served_model(self._models, request.path_params["name"]).card())

    async def _health(self, _: Request) -> JSONResponse:
        """Alive, also while draining: who restarts a process asks here."""
        return JSONResponse({"status": "draining" if self._middleware.closed else "ok"})

    async def _ready(self, _: Request) -> JSONResponse:
        """Whether requests may come: a balancer asks here."""
        if self._middleware.closed:
            return JSONResponse({"status": "draining"}, 503)
        problem = await self._readiness.problem()
        if problem is not None:
            return JSONResponse({"status": "unavailable", "reason": problem}, 503)
        return JSONResponse({"status": "ready"})

    async def _metrics_text(self, _: Request) -> PlainResponse:
        return PlainResponse(self._metrics.text(), media_type=CONTENT_TYPE)


async def _http_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    text = str(error.detail)
    if error.status_code == 404:
        text = "there is nothing here; the address of the API ends in /v1"
    refused = RequestRefused(ApiProblem(error.status_code, text))
    answer = await _problem(request, refused)
    answer.headers.update(error.headers or {})
    return answer


async def _problem(request: Request, error: Exception) -> JSONResponse:
    problem = problem_of(error, GatewayExchange.of(request.scope).id)
    return JSONResponse(problem.body(), problem.status, problem.headers())
