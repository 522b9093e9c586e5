"""Connects to an MCP server on demand, and again after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from weft.agents.mcp.connection import McpConnection, Opener
from weft.agents.mcp.server import McpServer
from weft.core.errors import ToolError, ToolRaised

_FIRST_DELAY_S: Final = 0.1
_LONGEST_DELAY_S: Final = 5.0
_PAUSE_S: Final = 30.0


class Reconnector:
    """Provides the connection for calls; `opened` receives each new one.

    Every loss and failed start makes the next start wait longer, until a call works. After
    `server.restarts` of them in a row there are no attempts for half a minute.
    """

    def __init__(
        self, server: McpServer, opener: Opener | None, opened: Callable[[McpConnection], None]
    ) -> None:
        self._server = server
        self._secrets = server.secrets()
        self._opener = opener
        self._opened = opened
        self._connection: McpConnection | None = None
        self._opening: asyncio.Task[McpConnection] | None = None
        self._failures = 0
        self._last: ToolError | None = None
        self._quiet_until_s = 0.0
        self._closed = False

    async def connection(self) -> McpConnection:
        """The connection, made now if there is none. A waiting caller may be cancelled alone.

        Raises: `ToolError`, retryable where a retry may help.
        """
        if self._closed:
            raise ToolRaised(f"{self._server.name} is closed")
        if self._connection is not None and not self._connection.lost:
            return self._connection
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_mark_retrieved)
        opening = self._opening
        await asyncio.wait({opening})
        if opening.cancelled():
            raise ToolRaised(f"{self._server.name} is closed")
        error = opening.exception()
        if isinstance(error, ToolError):  # each waiter gets its own error, to name its node
            raise type(error)(error.message, hint=error.hint, retryable=error.retryable) from error
        return opening.result()

    def worked(self) -> None:
        """Reset the failure count after a successful call."""
        self._failures = 0

    async def aclose(self) -> None:
        """Close the connection for good. Running calls fail."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._connection is not None:
            await self._connection.aclose()

    async def _open(self) -> McpConnection:
        try:
            await self._close_lost()
            self._check_patience()
            if self._failures:
                longer = _FIRST_DELAY_S * 2 ** (self._failures - 1)
                await asyncio.sleep(min(longer, _LONGEST_DELAY_S))
            try:
                connection = await McpConnection.open(self._server, self._secrets, self._opener)
            except ToolError as error:
                self._failed(error)
                raise
        finally:
            self._opening = None
        self._connection = connection
        self._opened(connection)
        return connection

    async def _close_lost(self) -> None:
        """Close a lost connection."""
        if self._connection is not None:
            self._failed(await self._connection.failure())
            await self._connection.aclose()
            self._connection = None

    def _failed(self, error: ToolError) -> None:
        self._failures += 1
        self._last = error
        self._quiet_until_s = asyncio.get_running_loop().time() + _PAUSE_S

    def _check_patience(self) -> None:
        """Raise `ToolRaised` while attempts are suspended after too many failures."""
        now_s = asyncio.get_running_loop().time()
        if self._failures > self._server.restarts and now_s < self._quiet_until_s:
            assert self._last is not None
            message = f"{self._last.message}, {self._failures} times in a row"
            raise ToolRaised(message, hint=self._last.hint, retryable=False)


def _mark_retrieved(opening: asyncio.Task[McpConnection]) -> None:
    """Retrieve the exception: all waiting callers may have been cancelled."""
    if not opening.cancelled():
        opening.exception()
