"""A shop with an OpenAPI document, served by uvicorn on 127.0.0.1 in a thread; and raw sockets.

The shop writes down what it was asked. A raw server says exactly the bytes it is given.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from weft.testing import FakeClock

Json = dict[str, Any]
LOCAL = ("127.0.0.0/8", "::1")

ITEM: Json = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "maxLength": 40},
        "secret": {"type": "string", "writeOnly": True},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
    },
}


def answers(schema: Any, status: str = "200") -> Json:
    return {status: {"description": "", "content": {"application/json": {"schema": schema}}}}


REF: Json = {"$ref": "#/components/schemas/Item"}
TEXT: Json = {"type": "string"}


def document(**paths: Any) -> Json:
    """The shop's document; `paths` are added to its paths, with / for _."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "paths": {
            "/items/{id}": {
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "get": {
                    "operationId": "getItem",
                    "summary": "One item.",
                    "responses": answers(REF),
                },
                "delete": {"operationId": "deleteItem", "responses": {"204": {"description": ""}}},
            },
            "/items": {
                "post": {
                    "operationId": "add-item",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": REF}},
                    },
                    "responses": answers(REF, "201"),
                },
            },
            "/echo/{name}": {
                "get": {
                    "operationId": "echo",
                    "parameters": [
                        {"name": "name", "in": "path", "required": True, "schema": TEXT},
                        {"name": "name", "in": "query", "schema": TEXT},
                        {"name": "X-Tag", "in": "header", "schema": TEXT},
                        {"name": "crumb", "in": "cookie", "schema": TEXT},
                        {"name": "ids", "in": "query", "schema": {"type": "array"}},
                        {
                            "name": "filter",
                            "in": "query",
                            "style": "deepObject",
                            "explode": True,
                            "schema": {"type": "object"},
                        },
                    ],
                    "responses": answers({"type": "object"}),
                }
            },
            "/go": {
                "get": {
                    "operationId": "go",
                    "parameters": [{"name": "to", "in": "query", "required": True, "schema": TEXT}],
                    "responses": answers({}),
                },
                "post": {"operationId": "goByPost", "responses": answers({})},
            },
            "/page": {"get": {"operationId": "page", "responses": answers({})}},
            **{path.replace("_", "/"): about for path, about in paths.items()},
        },
        "components": {"schemas": {"Item": ITEM}},
    }


def seen(request: Request, body: bytes = b"") -> Json:
    return {
        "method": request.method,
        "path": request.scope["raw_path"].decode(),
        "query": request.scope["query_string"].decode(),
        "headers": dict(request.headers),
        "body": body.decode(),
    }


class Hasty(FakeClock):
    """Does not wait, and remembers for how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)


class Shop:
    """`requests` lists what was asked; `reply`, when set, answers `/page` instead."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.reply: Callable[[int], Response] | None = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        routes = [
            Route("/v1/items/{id}", self._item, methods=["GET", "DELETE"]),
            Route("/v1/items", self._add, methods=["POST"]),
            Route("/v1/echo/{name:path}", self._echo),
            Route("/v1/go", self._go, methods=["GET", "POST"]),
            Route("/v1/page", self._page, methods=["GET", "POST"]),
            Route("/v1/echo/", self._echo),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=3600,  # an idle connection may be used again at any moment
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Shop:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.002)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _item(self, request: Request) -> Response:
        self.requests.append(seen(request))
        if request.method == "DELETE":
            return Response(status_code=204)
        number = int(request.path_params["id"])
        if number == 404:
            return JSONResponse({"error": "no such item"}, 404)
        if number == 13:  # not what the document promises
            return JSONResponse({"id": "thirteen", "name": "x"})
        return JSONResponse({"id": number, "name": "tea", "parts": [{"id": 1, "name": "leaf"}]})

    async def _add(self, request: Request) -> Response:
        self.requests.append(seen(request, await request.body()))
        return JSONResponse({"id": 7, **(await request.json())}, 201)

    async def _echo(self, request: Request) -> Response:
        self.requests.append(seen(request))
        return JSONResponse(self.requests[-1])

    async def _go(self, request: Request) -> Response:
        self.requests.append(seen(request))
        return RedirectResponse(request.query_params.get("to", "/v1/page"), 302)

    async def _page(self, request: Request) -> Response:
        self.requests.append(seen(request))
        if self.reply is not None:
            return self.reply(len(self.requests))
        return PlainTextResponse("here")


@asynccontextmanager
async def raw(
    *pieces: bytes, pause_s: float = 0.0, forever: bytes = b""
) -> AsyncIterator[Mapping[str, Any]]:
    """A server that reads a request, sends `pieces`, then `forever` for ever, and hangs up."""
    told: dict[str, Any] = {"requests": 0}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told["requests"] += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)
            while forever:
                writer.write(forever)
                await writer.drain()
                await asyncio.sleep(pause_s)
        except (ConnectionError, asyncio.IncompleteReadError):
            told["hung_up"] = True
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    told["url"] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield told
    finally:
        server.close()
        await server.wait_closed()
