"""The tools of one MCP server as a `ToolRunner`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp.types import CallToolResult

from weft.agents.mcp.connection import McpConnection, Opener, ProgressLines
from weft.agents.mcp.listing import ServerTool
from weft.agents.mcp.reconnect import Reconnector
from weft.agents.mcp.result import ConnectionLost, value_of
from weft.agents.mcp.server import McpServer
from weft.agents.tools.context import ToolContext, current_sink
from weft.agents.tools.problem import parameter_hint, plain_arguments, time_limit
from weft.agents.untrusted import identifier
from weft.core.errors import (
    BuildError,
    NotDone,
    ToolArgumentError,
    ToolNotFound,
    ToolRaised,
)
from weft.core.suggestion import suggestion
from weft.core.values import ToolSpec
from weft.validation import TooMuchToCheck, misfit_async

_SHOWN: Final = 5


class McpTools:
    """Implements `ToolRunner` over the tools of `server`, under names that begin with `prefix`.

        async with McpTools(McpServer("files", command=("server-files", "."))) as files:
            files.specs()
            await files.call("read_file", {"path": "notes.md"})

    Names are identifiers: `read-file` is `read_file`. Tools with unusable names or schemas are left
    out, see `refused`. A cancelled call is cancelled on the server; progress becomes log lines.
    When the server dies, running calls fail as retryable, but calls of repeatable tools are made
    once more. The next call restarts the server, after a growing delay. After `server.restarts`
    failures in a row, calls fail at once for half a minute.

    `transport` replaces the transport to the server.

    Raises: `BuildError` when a variable that the server needs is not set.
    """

    def __init__(
        self, server: McpServer, *, prefix: str = "", transport: Opener | None = None
    ) -> None:
        self._server = server
        self._prefix = prefix
        self._reconnector = Reconnector(server, transport, self._load_tools)
        self._tools: dict[str, ServerTool] | None = None
        self.refused: Mapping[str, str] = {}

    async def __aenter__(self) -> McpTools:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def start(self) -> None:
        """Connect, if not connected. Raises: `ToolRaised`, `ToolLimitError`, `ToolNotFound`."""
        await self._reconnector.connection()

    def specs(self) -> tuple[ToolSpec, ...]:
        """See `ToolRunner`. Raises: `BuildError` before `start`."""
        return tuple(tool.spec for tool in self._listed().values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        context = ToolContext(current_sink())
        try:
            return await self._call(name, arguments, context)
        finally:
            context.cancel()

    async def aclose(self) -> None:
        """Close the connection and the process. Running calls fail."""
        await self._reconnector.aclose()

    # -- calls ---------------------------------------------------------------------------------

    async def _call(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        connection = await self._connection()
        tool = self._tool(name)
        sent = await _check(tool.spec, arguments)
        try:
            result = await self._answer(connection, tool, sent, context)
        except ConnectionLost as lost:
            if not tool.spec.repeatable and lost.carried_out is not False:
                raise await _unanswered(tool, connection, lost) from lost
            context.log(f"the connection to {self._server.name} was lost; calling once more")
            connection = await self._connection()
            tool = self._tool(name)
            try:
                result = await self._answer(connection, tool, sent, context)
            except ConnectionLost as again:
                raise await _unanswered(tool, connection, again) from again
        self._reconnector.worked()
        # In a thread: checking a large result may take long, and must not block the event loop.
        limit = self._server.max_result_bytes
        return await asyncio.to_thread(value_of, tool, result, limit, connection.secrets.hidden)

    async def _connection(self) -> McpConnection:
        try:
            return await self._reconnector.connection()
        except ToolRaised as error:  # no call was sent
            raise NotDone(error.message, hint=error.hint, retryable=error.retryable) from error

    async def _answer(
        self,
        connection: McpConnection,
        tool: ServerTool,
        sent: dict[str, Any],
        context: ToolContext,
    ) -> CallToolResult:
        name, limit_s = tool.spec.name, self._server.timeout_s
        progress = ProgressLines(context.log, connection.secrets.hidden)
        async with time_limit(name, limit_s):
            return await connection.call(tool.name, sent, progress, name)

    def _tool(self, name: str) -> ServerTool:
        tools = self._listed()
        if name not in tools:
            raise self._missing(name, tools)
        return tools[name]

    def _listed(self) -> Mapping[str, ServerTool]:
        if self._tools is None:
            hint = "await tools.start(), or: async with McpTools(...) as tools"
            raise BuildError(f"the tools of {self._server.name} are not known yet", hint=hint)
        return self._tools

    def _load_tools(self, connection: McpConnection) -> None:
        """Use the tools of `connection`. Raises: `ToolNotFound` for a missing configured one."""
        tools = connection.listing.tools(self._prefix, self._server.only, self._server.effects)
        self.refused = dict(connection.listing.refused)
        there = {name for tool in tools.values() for name in (tool.name, identifier(tool.name))}
        for name in (*self._server.only, *self._server.effects):
            if name and name not in there:
                connection.end("was ended")
                raise self._missing(name, connection.listing.tools("", ()))
        if self.refused and not self._server.only and self._tools is None:
            current_sink()(f"{self._server.name}: {_left_out(self.refused)}")
        self._tools = tools

    def _missing(self, name: str, tools: Iterable[str]) -> ToolNotFound:
        reason = self.refused.get(name)
        hint = suggestion(name, tools) if reason is None else f"it cannot be used: {reason}"
        return ToolNotFound(f"{self._server.name} has no tool {name!r}", hint=hint)


def _left_out(refused: Mapping[str, str]) -> str:
    some = [f"{name} ({why})" for name, why in list(refused.items())[:_SHOWN]]
    more = f", and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    return f"left out, for they cannot be used: {', '.join(some)}{more}"


async def _check(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` as plain, valid data. Raises: `ToolArgumentError`."""
    try:
        plain = plain_arguments(arguments)
        why = await misfit_async(plain, spec.parameters)
    except (ValueError, TooMuchToCheck) as error:
        raise ToolArgumentError(f"{spec.name}: JSON cannot hold this: {error}") from error
    if why is not None:
        raise ToolArgumentError(f"{spec.name}: {why}", hint=parameter_hint(spec.parameters))
    return plain


async def _unanswered(
    tool: ServerTool, connection: McpConnection, lost: ConnectionLost
) -> ToolRaised:
    name = tool.spec.name
    if not connection.lost:
        return ToolRaised(f"{name}: the answer broke off", retryable=True)
    failure = await connection.failure()
    kind = NotDone if lost.carried_out is False else ToolRaised
    return kind(f"{name}: {failure.message} during the call", hint=failure.hint, retryable=True)
