"""MCP over the stdin and stdout of a process: a transport for the SDK's client.

Unlike the SDK's own it bounds the length of a line (a longer one is skipped), and captures stderr
instead of showing it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from weft.agents.mcp.process import ServerProcess
from weft.agents.mcp.result import OVERSIZED

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from weft.agents.mcp.server import McpServer
    from weft.agents.untrusted import Secrets

_TAIL_BYTES: Final = 4 * 1024


class OversizedLine:
    """A line beyond the limit, of which only the two ends are stored."""

    def __init__(self, head: bytes) -> None:
        self.head = head[:_TAIL_BYTES]
        self.tail = head[-_TAIL_BYTES:]

    def add(self, piece: bytes) -> None:
        """Add `piece` to the line."""
        self.tail = (self.tail + piece)[-_TAIL_BYTES:]


class BoundedLineSplitter:
    """Splits bytes into lines of at most `limit` bytes, without line ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._over: OversizedLine | None = None

    def feed(self, piece: bytes) -> Iterator[bytes | OversizedLine]:
        """The lines that `piece` completes."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._over or bytes(self._line)
            self._line.clear()
            self._over = None
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._over is not None:
            self._over.add(piece)
            return
        self._line += piece
        if len(self._line) > self._limit:
            self._over = OversizedLine(bytes(self._line))
            self._line.clear()


_ID: Final = rb'"id"\s*:\s*(\d{1,18})'
_ID_FIRST: Final = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST: Final = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def stdio_transport(
    server: McpServer,
    secrets: Secrets,
    started: Callable[[ServerProcess], None],
    silent: Callable[[], None],
) -> AsyncIterator[TransportStreams]:
    """The transport to a new process of the server's command.

    `started` receives the process; `silent` is called at the end of its output.

    Raises: `OSError` or `ValueError` where it cannot be started.
    """
    environment = {name: secrets[name] for name in server.env_from}
    process = await ServerProcess.start(server.command, server.folder, environment)
    started(process)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    lines = BoundedLineSplitter(server.max_message_bytes)
    tasks = {
        asyncio.create_task(_read(process, incoming, lines, silent)),
        asyncio.create_task(_write(process, outgoing, silent)),
    }
    try:
        yield read, write
    finally:
        for task in tasks:
            task.cancel()
        try:
            await process.end()
            await asyncio.wait(tasks)
        finally:
            for stream in (incoming, read, write, outgoing):
                stream.close()


async def _read(
    process: ServerProcess,
    incoming: _Incoming,
    lines: BoundedLineSplitter,
    silent: Callable[[], None],
) -> None:
    """Forward every message until the output ends."""
    try:
        with incoming, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while piece := await process.read():
                for line in lines.feed(piece):
                    await incoming.send(_message(line))
    finally:
        silent()


async def _write(
    process: ServerProcess,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    silent: Callable[[], None],
) -> None:
    try:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await process.write(text.encode() + b"\n")
    except OSError:  # its stdin is closed
        silent()


def _message(line: bytes | OversizedLine) -> SessionMessage | Exception:
    if isinstance(line, OversizedLine):
        return _refusal(line)
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


def _refusal(line: OversizedLine) -> SessionMessage | Exception:
    """An error in place of a too large answer, if the id of its request is readable."""
    found = _ID_FIRST.match(line.head) or _ID_LAST.search(line.tail)
    if found is None:
        return ValueError("a message that is too large")
    error = ErrorData(code=OVERSIZED, message="the answer is too large")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))
