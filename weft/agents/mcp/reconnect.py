"""The connection to an MCP server while its tools are used: made on demand, again when lost."""

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
    """Gives the connection to whoever makes a call. `opened` hears of each new one.

    Every loss and every start in vain makes the next start wait longer, until a call works. After
    `server.restarts` of them in a row the server is left alone for half a minute.
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
        """The connection, made now if there is none. Who else waits for it may be cancelled.

        Raises: `ToolError`, retryable where another try may help.
        """
        if self._closed:
            raise ToolRaised(f"{self._server.name} is closed")
        if self._connection is not None and not self._connection.lost:
            return self._connection
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_seen)
        opening = self._opening
        await asyncio.wait({opening})
        if opening.cancelled():
            raise ToolRaised(f"{self._server.name} is closed")
        error = opening.exception()
        if isinstance(error, ToolError):  # each waiter gets an error of its own, to name its node
            raise type(error)(error.message, hint=error.hint, retryable=error.retryable) from error
        return opening.result()

    def worked(self) -> None:
        """A call got its answer: what went wrong before counts no more."""
        self._failures = 0

    async def aclose(self) -> None:
        """End the connection for good. Calls under way fail."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._connection is not None:
            await self._connection.aclose()

    async def _open(self) -> McpConnection:
        try:
            await self._bury()
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

    async def _bury(self) -> None:
        """Clean up after a connection that was lost."""
        if self._connection is not None:
            self._failed(await self._connection.failure())
            await self._connection.aclose()
            self._connection = None

    def _failed(self, error: ToolError) -> None:
        self._failures += 1
        self._last = error
        self._quiet_until_s = asyncio.get_running_loop().time() + _PAUSE_S

    def _check_patience(self) -> None:
        """Raise `ToolRaised` while a server that failed too often is left alone."""
        now_s = asyncio.get_running_loop().time()
        if self._failures > self._server.restarts and now_s < self._quiet_until_s:
            assert self._last is not None
            message = f"{self._last.message}, {self._failures} times in a row"
            raise ToolRaised(message, hint=self._last.hint, retryable=False)


def _seen(opening: asyncio.Task[McpConnection]) -> None:
    """Nobody has to wait for it any more: all who did may have been cancelled."""
    if not opening.cancelled():
        opening.exception()
