"""What the SDK raises, as our errors."""

from __future__ import annotations

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult
from pydantic import ValidationError

from weft.agents.mcp.result import ConnectionLost, call_error
from weft.agents.mcp.stdio import OVERSIZED
from weft.core.errors import (
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
)


def malformed() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        CallToolResult.model_validate({"content": 7})
    return raised.value


@pytest.mark.parametrize(
    ("error", "kind", "said", "again"),
    [
        (MCPError(-32602, "n must be small"), ToolArgumentError, "t: n must be small", False),
        (MCPError(-32601, "no such method"), ToolNotFound, "t: no such method", False),
        (MCPError(1, "\x1b[31mred secret"), ToolRaised, "t:  [31mred $KEY", False),
        (MCPError(OVERSIZED, "x"), ToolLimitError, "too large", False),
        (MCPError(-32700, "parse: the answer is too large"), ToolLimitError, "too large", False),
        (
            MCPError(-32000, "SSE stream failed: Server-sent event exceeded the 9 byte limit."),
            ToolLimitError,
            "too large",
            False,
        ),
        (TimeoutError(), ToolLimitError, "does not take the call", True),
        (malformed(), ToolResultError, "not one that MCP knows", False),
        (RuntimeError("x" * 9999), ToolRaised, "t: RuntimeError: xxx", False),
    ],
)
def test_errors_of_tools(error: Exception, kind: type[ToolError], said: str, again: bool) -> None:
    failure = call_error("t", error, lambda text: text.replace("secret", "$KEY"))
    assert type(failure) is kind
    assert said.replace("  ", " ") in str(failure)
    assert len(str(failure)) < 2_200
    assert failure.retryable is again


@pytest.mark.parametrize(
    ("error", "carried_out"),
    [
        (MCPError(-32000, "Connection closed"), None),
        (MCPError(-32000, "SSE stream ended without a response"), None),
        (MCPError(-32600, "Session terminated"), False),
        (anyio.BrokenResourceError(), None),
        (anyio.ClosedResourceError(), None),
    ],
)
def test_lost_connections(error: Exception, carried_out: bool | None) -> None:
    failure = call_error("t", error, str)
    assert isinstance(failure, ConnectionLost)
    assert failure.carried_out is carried_out


@pytest.mark.parametrize(
    ("status", "again"), [(401, False), (404, False), (429, True), (503, True)]
)
def test_an_http_error_is_told_by_its_status(status: int, again: bool) -> None:
    error = MCPError(-32603, "Server returned an error response")
    failure = call_error("t", error, str, status)
    assert isinstance(failure, ToolRaised)
    assert str(failure) == f"t: the server answered HTTP {status}"
    assert failure.retryable is again
