"""The endpoints of the page, put together as one ASGI application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from weft.core.errors import WeftError
from weft.core.ports.journal import Journal
from weft.serving.ui.assets import Assets
from weft.serving.ui.changes import Changes
from weft.serving.ui.door import Door
from weft.serving.ui.effects import Effects
from weft.serving.ui.key import Key
from weft.serving.ui.letters import Letters
from weft.serving.ui.overview import Overview
from weft.serving.ui.problem import Refused, problem_of
from weft.serving.ui.readers import RunReaders
from weft.serving.ui.runs import Runs


def application(
    journal: Journal, readers: RunReaders, changes: Changes, key: Key, port: int
) -> ASGIApp:
    """Everything behind the door of a server on `port`."""
    runs, effects, assets = Runs(journal), Effects(journal, readers.unsettled), Assets()
    overview = Overview(journal, readers)
    routes = [
        Route("/api/changes", changes.stream),
        Route("/api/runs", runs.all),
        Route("/api/run", runs.one),
        Route("/api/records", runs.records),
        Route("/api/details", runs.details),
        Route("/api/text", runs.text),
        Route("/api/timing", overview.timing),
        Route("/api/values", overview.values),
        Route("/api/value", overview.value),
        Route("/api/unsettled", effects.all),
        Route("/api/letters", Letters(journal, effects).take, methods=["POST"]),
        Route("/{name:path}", assets.file),
    ]
    handlers = {
        HTTPException: _http_problem,
        Refused: _problem,
        WeftError: _problem,
        Exception: _problem,
    }
    inner = Starlette(routes=routes, exception_handlers=handlers)
    return Door(inner, key, port)


async def _http_problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem_of(Refused(error.status_code, str(error.detail)))


async def _problem(_: Request, error: Exception) -> JSONResponse:
    return problem_of(error)
