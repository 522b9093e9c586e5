"""Writes a response piece by piece: one JSON document, or server-sent events. Knows no models."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.types import Send

from weft.serving.gateway.problem import Problem

_EVENT_STREAM = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # a proxy in between must not collect the pieces
}


class Response:
    """One response, over ASGI."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._streaming = False
        self._complete = False

    @property
    def complete(self) -> bool:
        """True once its last piece is on its way."""
        return self._complete

    async def whole(
        self, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """One JSON document."""
        body = _encoded(value)
        length = {"content-type": "application/json", "content-length": str(len(body))}
        await self._start(status, {**length, **(headers or {})})
        await self._piece(body, more=False)

    async def event(self, value: object) -> None:
        """One event of a stream."""
        await self._begin()
        await self._piece(b"data: " + _encoded(value) + b"\n\n")

    async def silence(self) -> None:
        """A comment, which clients ignore, so that nobody takes silence for death."""
        await self._begin()
        await self._piece(b": keep-alive\n\n")

    async def end(self) -> None:
        """The regular end of a stream."""
        await self._piece(b"data: [DONE]\n\n", more=False)

    async def fail(self, problem: Problem) -> None:
        """Say what went wrong: as the response, or as the last event of a stream that has begun.

        Where neither is possible any more, the server closes the connection.
        """
        if not self._begun:
            await self.whole(problem.body(), problem.status, problem.headers())
        elif self._streaming and not self._complete:
            await self._piece(b"data: " + _encoded(problem.body()) + b"\n\n", more=False)

    async def _begin(self) -> None:
        if not self._streaming:
            self._streaming = True
            await self._start(200, _EVENT_STREAM)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self._begun = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _piece(self, body: bytes, more: bool = True) -> None:
        self._complete = not more
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _encoded(value: object) -> bytes:
    # What a model wrote may hold half a surrogate pair, which UTF-8 cannot.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
