"""The page's server: its endpoints as one ASGI application, its own files, its socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from weft.core.errors import WeftError
from weft.core.ports.journal import Journal
from weft.serving.asgi import LoopbackServer
from weft.serving.ui.access import Key, UiMiddleware
from weft.serving.ui.changes import POLL_S, ChangeStream
from weft.serving.ui.experiments import ExperimentEndpoints
from weft.serving.ui.overview import OverviewEndpoints, RunReaders
from weft.serving.ui.responses import UiRefusal, problem_of
from weft.serving.ui.runs import RunEndpoints
from weft.serving.ui.signals import EffectEndpoints, SignalEndpoint

_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "svg": "image/svg+xml",
}


class Assets:
    """Serves the package's files, read at the start, and nothing else from the disk."""

    def __init__(self) -> None:
        self._files = dict(_served(files("weft.serving.ui") / "assets", ""))

    async def file(self, request: Request) -> Response:
        """The file at the path; the page itself for `/`."""
        name = request.path_params.get("name") or "index.html"
        content = self._files.get(name)
        if content is None:
            raise UiRefusal(404, "there is no such page")
        return Response(content, media_type=_TYPES[name.rpartition(".")[2]])


def _served(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            yield from _served(entry, f"{name}/")
        elif name.rpartition(".")[2] in _TYPES:
            yield name, entry.read_bytes()


def application(
    journal: Journal, readers: RunReaders, changes: ChangeStream, key: Key, port: int
) -> ASGIApp:
    """The application of a server on `port`, behind `UiMiddleware`."""
    runs, effects, assets = (
        RunEndpoints(journal),
        EffectEndpoints(journal, readers.unsettled),
        Assets(),
    )
    overview = OverviewEndpoints(journal, readers)
    experiments = ExperimentEndpoints(journal, readers.experiments)
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
        Route("/api/experiments", experiments.latest),
        Route("/api/evaluation", experiments.evaluation),
        Route("/api/study", experiments.study),
        Route("/api/unsettled", effects.all),
        Route("/api/letters", SignalEndpoint(journal, effects).take, methods=["POST"]),
        Route("/{name:path}", assets.file),
    ]
    handlers = {
        HTTPException: _http_problem,
        UiRefusal: _problem,
        WeftError: _problem,
        Exception: _problem,
    }
    inner = Starlette(routes=routes, exception_handlers=handlers)
    return UiMiddleware(inner, key, port)


async def _http_problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem_of(UiRefusal(error.status_code, str(error.detail)))


async def _problem(_: Request, error: Exception) -> JSONResponse:
    return problem_of(error)


_HOST: Final = "127.0.0.1"


class UiServer:
    """Shows the runs of `journal` to users with the `url`. The caller closes the journal.

        server = UiServer(journal, readers)
        await server.serve(lambda: print(server.url))

    `readers` read the runs; `port` 0 takes a free one; `poll_s` is the polling interval while a
    page is open. Raises: `ServeError` when the port is taken.
    """

    def __init__(
        self, journal: Journal, readers: RunReaders, port: int = 0, *, poll_s: float = POLL_S
    ) -> None:
        self._journal = journal
        self._readers = readers
        self._hosted = LoopbackServer(_HOST, port)
        self._changes = ChangeStream(journal, poll_s)
        self._key = Key()

    @property
    def address(self) -> str:
        """`http://host:port`, without the key."""
        return self._hosted.address

    @property
    def url(self) -> str:
        """The address with the key. The part after `#` is never sent, so no log contains it."""
        return f"{self.address}/#key={self._key.text}"

    async def serve(self, ready: Callable[[], None] | None = None) -> None:
        """Serve until `stop`; `ready` is called when pages can connect."""
        app = application(self._journal, self._readers, self._changes, self._key, self._hosted.port)
        watching = asyncio.create_task(self._changes.watch())
        try:
            await self._hosted.serve(app, ready)
        finally:
            watching.cancel()
            await asyncio.wait((watching,))
        if not watching.cancelled():
            watching.result()

    def stop(self) -> None:
        """End `serve` soon. Call it in the loop's thread."""
        self._changes.stop()
        self._hosted.stop()
