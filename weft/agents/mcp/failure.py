"""Everything that can go wrong in a call of an MCP server, as our errors. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from pydantic import ValidationError

from weft.agents.foreign import shown
from weft.agents.mcp.http import TOO_LARGE
from weft.agents.mcp.stdio import OVERSIZED
from weft.core.errors import (
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
)

LONGEST: Final = 2_000
_NO_SESSION: Final = "Session terminated"
_EVENT: Final = "SSE stream failed"
_TOO_LONG: Final = "byte limit."
_HTTP_ERROR: Final = "Server returned an error response"
_TOO_MANY: Final = 429
_SERVERS_FAULT: Final = 500


class ConnectionLost(Exception):
    """A call got no answer, for want of a connection.

    `carried_out` is False where the server surely did nothing, None where nobody knows.
    """

    def __init__(self, *, carried_out: bool | None = None) -> None:
        super().__init__("the connection was lost")
        self.carried_out = carried_out


def converted(
    name: str, error: Exception, hidden: Callable[[str], str], status: int | None = None
) -> ToolError | ConnectionLost:
    """What the SDK raised in a call of the tool `name`; `hidden` takes secrets out of texts.

    `status`: the HTTP error that came last, which the SDK keeps to itself.
    """
    match error:
        case MCPError(message=message) if message == _HTTP_ERROR and status is not None:
            again = status == _TOO_MANY or status >= _SERVERS_FAULT
            return ToolRaised(f"{name}: the server answered HTTP {status}", retryable=again)
        case MCPError():
            return _answered(name, error.code, hidden(shown(error.message, LONGEST)))
        case anyio.BrokenResourceError() | anyio.ClosedResourceError():
            return ConnectionLost()
        case ValidationError():
            return ToolResultError(f"{name}: the server's answer is not one that MCP knows")
        case TimeoutError():
            return ToolLimitError(f"{name}: the server does not take the call", retryable=True)
        case _:
            said = hidden(shown(str(error), LONGEST))
            return ToolRaised(f"{name}: {type(error).__name__}: {said}")


def _answered(name: str, code: int, said: str) -> ToolError | ConnectionLost:
    """An error that the server sent, or that the SDK puts in its place."""
    broken_off = code == PARSE_ERROR and TOO_LARGE in said
    if code == OVERSIZED or broken_off or (said.startswith(_EVENT) and said.endswith(_TOO_LONG)):
        return ToolLimitError(f"{name}: {TOO_LARGE}", hint="ask for less, or raise max_result")
    if code == CONNECTION_CLOSED:
        return ConnectionLost()
    if code == INVALID_REQUEST and said == _NO_SESSION:
        return ConnectionLost(carried_out=False)
    if code == INVALID_PARAMS:
        return ToolArgumentError(f"{name}: {said}")
    if code == METHOD_NOT_FOUND:
        return ToolNotFound(f"{name}: {said}")
    return ToolRaised(f"{name}: {said}")
