"""`GET /healthz`: an answer says that the event loop runs. Knows no application."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_PATH = "/healthz"


class Health:
    """Answers `GET /healthz` before `app`, without a key; everything else is `app`'s."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and scope["path"] == _PATH and scope["method"] == "GET"
        app = JSONResponse({"status": "ok"}) if asked else self._app
        await app(scope, receive, send)
