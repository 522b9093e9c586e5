"""One connection to an MCP server, with progress as log lines.

Its own task holds the SDK's client, which has to be left in the task that entered it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

import httpx2
from mcp import Client
from mcp.client import Transport
from mcp.shared.exceptions import MCPError
from mcp.types import METHOD_NOT_FOUND, CallToolResult, Implementation
from pydantic import ValidationError

from weft.agents.mcp.http import http_transport
from weft.agents.mcp.listing import ToolListing
from weft.agents.mcp.message_filter import filter_messages
from weft.agents.mcp.process import ServerProcess
from weft.agents.mcp.result import ConnectionLost, call_error
from weft.agents.mcp.server import McpServer
from weft.agents.mcp.stdio import stdio_transport
from weft.agents.untrusted import Secrets, printable
from weft.core.errors import ToolError, ToolLimitError, ToolRaised

_MOST_LINES: Final = 200
_LONGEST: Final = 400


class ProgressLines:
    """Implements the SDK's progress callback. Drops repeated lines, and bounds their number."""

    def __init__(self, log: Callable[[str], None], hidden: Callable[[str], str]) -> None:
        self._log = log
        self._hidden = hidden
        self._last = ""
        self._count = 0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        line = self._line(progress, total, message)
        if line == self._last or self._count > _MOST_LINES:
            return
        self._last = line
        self._count += 1
        self._log(line if self._count <= _MOST_LINES else "no more of its progress is shown")

    def _line(self, progress: float, total: float | None, message: str | None) -> str:
        text = self._hidden(printable(message or "", _LONGEST))
        if text and not total:
            return text
        how_far = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        return f"{how_far}: {text}" if text else how_far


Opener = Callable[["McpConnection"], Transport]
"""Makes the transport of a connection; the transport may report its end."""

_MAX_PAGES: Final = 50
_CLOSING_S: Final = 8.0
_DISCOVER_S: Final = 3.0
_EXIT_S: Final = 0.5
_SHOWN: Final = 600
_FINAL: Final = frozenset({400, 401, 403, 404, 405, 406, 410})
_KEYS: Final = frozenset({401, 403})


class McpConnection:
    """A connection, made by `open`; `lost` once it has ended. `listing` has the server's tools."""

    def __init__(self, server: McpServer, secrets: Secrets, opener: Opener | None) -> None:
        self.server = server
        self.secrets = secrets
        self.listing = ToolListing(server.max_tools)
        self._opener = opener or _transport
        self._process: ServerProcess | None = None
        self._client: Client | None = None
        self._calls: set[asyncio.Task[CallToolResult]] = set()
        self._status: int | None = None
        self._why = ""
        self._silent = False
        self._final = False
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def open(
        cls, server: McpServer, secrets: Secrets, opener: Opener | None = None
    ) -> McpConnection:
        """Connect, and list the tools.

        Raises: `ToolRaised` or `ToolLimitError`, retryable where a retry may help.
        """
        connection = cls(server, secrets, opener)
        try:
            async with asyncio.timeout(server.start_timeout_s):
                await connection._ready.wait()
        except TimeoutError as error:
            await connection.aclose()
            raise connection._timeout_error() from error
        except BaseException:
            connection._kill()
            await connection.aclose()
            raise
        if connection.lost:
            raise await connection.failure()
        return connection

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._over.is_set()

    async def failure(self) -> ToolError:
        """The error that ended the connection. Waits until it is known."""
        await asyncio.wait({self._task}, timeout=_CLOSING_S)
        message = f"{self.server.name} {self._why or 'is closed'}"
        hint = self._stderr_hint()
        if self._status is not None:
            message += f" (HTTP {self._status})"
            hint = "check its key: api_key_env, headers_from" if self._status in _KEYS else hint
        return ToolRaised(message, hint=hint, retryable=not self._final)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], progress: ProgressLines, shown_as: str
    ) -> CallToolResult:
        """Call the server's tool `tool`. A cancellation is sent to the server.

        Raises: `ConnectionLost`; a `ToolError` with the name `shown_as`.
        """
        if self.lost or self._client is None:
            raise ConnectionLost(carried_out=False)
        request = self._client.call_tool(tool, dict(arguments), progress_callback=progress)
        task = asyncio.create_task(request)
        self._calls.add(task)
        task.add_done_callback(self._call_done)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()  # notifies the server, without waiting for it
            raise
        if task.cancelled():
            raise ConnectionLost
        error = task.exception()
        if error is None:
            return task.result()
        if not isinstance(error, Exception):
            raise error
        failure = call_error(shown_as, error, self.secrets.hidden, self._status)
        if isinstance(failure, ConnectionLost) and failure.carried_out is False:
            self.end("has forgotten the session")
        raise failure from error

    def end(self, why: str) -> None:
        """End the connection; the first reason counts."""
        if not self.lost:
            self._why = why
            self._over.set()

    def flooded(self) -> None:
        """End the connection of a server that floods it with unsolicited messages."""
        self.end("was ended: it sent 10,000 messages that answer nothing")
        self._kill()

    def started(self, process: ServerProcess) -> None:
        """Record the process of the transport."""
        self._process = process

    def silent(self) -> None:
        """End the connection of a process that has closed its output or input."""
        self._silent |= not self.lost
        self.end("fell silent")

    def answered(self, status: int) -> None:
        """Record the HTTP status of a response."""
        self._status = status if status >= 400 else None

    async def aclose(self) -> None:
        """Close the connection and its process. Running calls end as lost."""
        try:
            cancelled = {task for task in self._calls if task.cancelling()}
            if cancelled:  # their cancellations are still being sent
                await asyncio.wait(cancelled, timeout=_EXIT_S)
            self.end("")
            if self._ready.is_set():
                await asyncio.wait({self._task}, timeout=_CLOSING_S)
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})
            if self._calls:
                await asyncio.wait(self._calls)
        except asyncio.CancelledError:
            self._kill()
            raise

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        else:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            transport = filter_messages(
                self._opener(self),
                self.listing,
                self.flooded,
                min(_DISCOVER_S, self.server.start_timeout_s / 4),
            )
            info = Implementation(name="weft", version=version("weft"))
            async with Client(transport, cache=None, client_info=info) as client:
                await self._list(client)
                self._client = client
                self._ready.set()
                await self._over.wait()
                await self._await_exit()
        except Exception as error:  # noqa: BLE001 - any error is the reason of the end
            await self._await_exit()
            self._note(error)
        finally:
            self.end("was ended")
            self._ready.set()

    async def _list(self, client: Client) -> None:
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:  # a server without tools
                    return
                raise
            cursor = page.next_cursor
            if cursor is None or len(page.tools) >= self.server.max_tools:
                return

    async def _await_exit(self) -> None:
        """Wait briefly for a silent process to exit, so that its status is known."""
        if self._process is not None and self._silent:
            await asyncio.wait({self._process.exited}, timeout=_EXIT_S)
            self._why = self._process.ending

    def _note(self, error: Exception) -> None:
        """Record `error` as the reason of the end, unless there is a better one."""
        leaf: BaseException = error
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        text = self.secrets.hidden(printable(str(leaf), _SHOWN))
        match leaf:
            case OSError() | ValueError() if self._process is None and self.server.command:
                self._final = True
                why = f"cannot be started: {text}"
            case httpx2.HTTPError():
                self._status = None
                why = f"cannot be reached: {text or type(leaf).__name__}"
            case ValidationError():
                self._final = True
                why = "does not speak MCP: its answer cannot be read"
            case MCPError():
                why = f"refused the connection: {text}"
            case _:
                why = f"failed: {type(leaf).__name__}: {text}"
        self._final |= self._status in _FINAL
        self.end(why)

    def _call_done(self, task: asyncio.Task[CallToolResult]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, even where no caller waits any more

    def _timeout_error(self) -> ToolError:
        message = f"{self.server.name} did not answer within {self.server.start_timeout_s:g} s"
        return ToolLimitError(message, hint=self._stderr_hint(), retryable=True)

    def _stderr_hint(self) -> str | None:
        if self._process is None or not self._process.stderr_tail:
            return None
        tail = self.secrets.hidden(printable(self._process.stderr_tail[-_SHOWN:], _SHOWN))
        return f"it said: {tail}"


def _transport(connection: McpConnection) -> Transport:
    if connection.server.command:
        return stdio_transport(
            connection.server, connection.secrets, connection.started, connection.silent
        )
    return http_transport(connection.server, connection.secrets, connection.answered)
