"""HTTP servers that misbehave on purpose: a page that speaks just enough of the protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests import manual_clock
from weft.agents.mcp import McpServer, McpTools
from weft.core.errors import ToolError, ToolLimitError, ToolRaised

Answer = Callable[[asyncio.StreamWriter, int], Awaitable[None]]
LIMIT_S = 20.0
EVENTS = "content-type: text/event-stream\r\n"


def head(status: str, headers: str = "", length: int | None = None) -> bytes:
    size = "" if length is None else f"content-length: {length}\r\n"
    return f"HTTP/1.1 {status}\r\n{headers}{size}connection: close\r\n\r\n".encode()


def document(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return head("200 OK", "content-type: application/json\r\n", len(body)) + body


def event(message: dict[str, Any]) -> bytes:
    return f"event: message\r\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\r\n\r\n".encode()


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


async def fine(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(document({"id": request, "result": text("fine")}))


async def huge(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(document({"id": request, "result": text("x" * 4_000_000)}))


async def huge_event(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", EVENTS) + event({"id": request, "result": text("x" * 4_000_000)}))


async def endless(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", "content-type: application/json\r\n") + b'{"jsonrpc": "')
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def drip(writer: asyncio.StreamWriter, request: int) -> None:
    """Piece after piece, while the time that a call may take passes."""
    writer.write(head("200 OK", EVENTS))
    for piece in itertools.count():
        writer.write(b":")
        await writer.drain()
        await asyncio.sleep(0.01)
        if piece == 20:
            manual_clock.pass_time(LIMIT_S)


async def noise(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", EVENTS))
    while True:
        params = {"level": "info", "data": "x"}
        writer.write(event({"method": "notifications/message", "params": params}))
        await writer.drain()


async def web_page(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", "content-type: text/html\r\n", 4) + b"<a/>")


async def junk(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", "content-type: application/json\r\n", 5) + b"junk!")


async def busy(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("503 Busy", length=0))


async def cut(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("200 OK", EVENTS) + b": nothing follows\r\n\r\n")


async def forgotten(writer: asyncio.StreamWriter, request: int) -> None:
    writer.write(head("404 Gone", length=0))


CALLS = (fine, huge, huge_event, endless, drip, noise, web_page, junk, busy, cut, forgotten)


async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        request = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = request.partition("content-length: ")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(size or 0)) or b"{}")
        await speak(body, writer)
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def speak(body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    method, number = body.get("method"), body.get("id")
    if method == "initialize":
        info = {"name": "page", "version": "1"}
        version = body["params"]["protocolVersion"]
        opened = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        answered = document({"id": number, "result": opened})
        writer.write(answered.replace(b"\r\n", b"\r\nmcp-session-id: 1\r\n", 1))
    elif method == "tools/list":
        tools = [{"name": each.__name__, "inputSchema": {"type": "object"}} for each in CALLS]
        writer.write(document({"id": number, "result": {"tools": tools}}))
    elif method == "tools/call":
        answers: dict[str, Answer] = {each.__name__: each for each in CALLS}
        await answers[body["params"]["name"]](writer, body["id"])
    elif number is None:
        writer.write(head("202 OK" if method else "405 No", length=0))
    else:
        error = {"code": -32601, "message": "no"}
        writer.write(document({"id": number, "error": error}))


def use(what: Callable[[McpTools], Awaitable[None]]) -> None:
    async def main() -> None:
        page = await asyncio.start_server(respond, "127.0.0.1", 0)
        async with page, asyncio.timeout(120):
            url = f"http://127.0.0.1:{page.sockets[0].getsockname()[1]}/mcp"
            server = McpServer("page", url=url, timeout_s=LIMIT_S, max_result_bytes=100_000)
            async with McpTools(server) as tools:
                await what(tools)

    manual_clock.run(main())


@pytest.mark.parametrize(
    ("tool", "error", "why"),
    [
        ("huge", ToolLimitError, "too large"),
        ("huge_event", ToolLimitError, "too large"),
        ("endless", ToolLimitError, "too large"),
        ("drip", ToolLimitError, "longer than its 20 s"),
        ("web_page", ToolRaised, "content type"),
        ("junk", ToolRaised, "parse"),
        ("busy", ToolRaised, "HTTP 503"),
        ("cut", ToolRaised, "broke off"),
    ],
)
def test_a_bad_answer_fails_its_own_call_only(tool: str, error: type[ToolError], why: str) -> None:
    async def what(tools: McpTools) -> None:
        assert await tools.call("fine", {}) == "fine"
        with pytest.raises(error, match=why):
            await tools.call(tool, {})
        assert await tools.call("fine", {}) == "fine"

    use(what)


def test_a_page_that_never_answers() -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            manual_clock.pass_time(LIMIT_S)
            await reader.read()  # until the client leaves
            writer.close()
            gone.set()

        page = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with page:
            url = f"http://127.0.0.1:{page.sockets[0].getsockname()[1]}/mcp"
            tools = McpTools(McpServer("page", url=url, start_timeout_s=LIMIT_S))
            with pytest.raises(ToolLimitError, match=r"did not answer within 20 s") as raised:
                await tools.call("fine", {})
            assert raised.value.retryable
            async with asyncio.timeout(120):
                await gone.wait()
            await tools.aclose()

    manual_clock.run(main())


def test_a_flood_ends_in_time() -> None:
    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolError) as raised:
            await tools.call("noise", {})
        assert raised.value.retryable
        assert await tools.call("fine", {}) == "fine"

    use(what)


def test_a_session_that_is_forgotten_is_opened_again() -> None:
    """The server did nothing, so the call is made once more, and then given up."""

    async def what(tools: McpTools) -> None:
        with pytest.raises(ToolRaised, match="forgotten the session"):
            await tools.call("forgotten", {})
        assert await tools.call("fine", {}) == "fine"

    use(what)
