"""Converts the result of an MCP call to a value of bounded size, or to a weft error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    TextContent,
    TextResourceContents,
)
from pydantic import ValidationError
from pydantic_core import to_json

from weft.agents.mcp.listing import ServerTool
from weft.agents.tools.problem import check_size
from weft.agents.untrusted import printable
from weft.core.errors import (
    ToolArgumentError,
    ToolError,
    ToolLimitError,
    ToolNotFound,
    ToolRaised,
    ToolResultError,
)
from weft.validation import TooMuchToCheck, misfit

LONGEST: Final = 2_000
_SMALLER: Final = "ask for less, or raise max_result"
_NO_SESSION: Final = "Session terminated"
TOO_LARGE: Final = "the answer is too large"
OVERSIZED: Final = -32099
"""The code of the error that replaces a too large answer."""
_EVENT: Final = "SSE stream failed"
_TOO_LONG: Final = "byte limit."
_HTTP_ERROR: Final = "Server returned an error response"
_TOO_MANY: Final = 429
_SERVERS_FAULT: Final = 500


class ConnectionLost(Exception):
    """A call got no answer, because the connection ended.

    `carried_out` is False where the server surely did nothing, None where that is unknown.
    """

    def __init__(self, *, carried_out: bool | None = None) -> None:
        super().__init__("the connection was lost")
        self.carried_out = carried_out


def call_error(
    name: str, error: Exception, hidden: Callable[[str], str], status: int | None = None
) -> ToolError | ConnectionLost:
    """The error for an SDK error in a call of the tool `name`; `hidden` redacts secrets.

    `status`: the last HTTP error, which the SDK does not report.
    """
    match error:
        case MCPError(message=message) if message == _HTTP_ERROR and status is not None:
            again = status == _TOO_MANY or status >= _SERVERS_FAULT
            return ToolRaised(f"{name}: the server answered HTTP {status}", retryable=again)
        case MCPError():
            return _answered(name, error.code, hidden(printable(error.message, LONGEST)))
        case anyio.BrokenResourceError() | anyio.ClosedResourceError():
            return ConnectionLost()
        case ValidationError():
            return ToolResultError(f"{name}: the server's answer is not one that MCP knows")
        case TimeoutError():
            return ToolLimitError(f"{name}: the server does not take the call", retryable=True)
        case _:
            text = hidden(printable(str(error), LONGEST))
            return ToolRaised(f"{name}: {type(error).__name__}: {text}")


def _answered(name: str, code: int, text: str) -> ToolError | ConnectionLost:
    """The error for a JSON-RPC error of the server or the SDK."""
    broken_off = code == PARSE_ERROR and TOO_LARGE in text
    if code == OVERSIZED or broken_off or (text.startswith(_EVENT) and text.endswith(_TOO_LONG)):
        return ToolLimitError(f"{name}: {TOO_LARGE}", hint=_SMALLER)
    if code == CONNECTION_CLOSED:
        return ConnectionLost()
    if code == INVALID_REQUEST and text == _NO_SESSION:
        return ConnectionLost(carried_out=False)
    if code == INVALID_PARAMS:
        return ToolArgumentError(f"{name}: {text}")
    if code == METHOD_NOT_FOUND:
        return ToolNotFound(f"{name}: {text}")
    return ToolRaised(f"{name}: {text}")


_NO_TEXT: Final = "it says no more"


def value_of(
    tool: ServerTool, result: CallToolResult, max_bytes: int, hidden: Callable[[str], str]
) -> Any:
    """The value of a call: structured content, if any, checked against its schema.

    Otherwise the texts, joined by line breaks; None without content; and with more than text
    `{text, parts}`, with the other parts in the protocol's form. `hidden` redacts secrets in
    errors.

    Raises: `ToolRaised`, `ToolResultError`, `ToolLimitError`.
    """
    name = tool.spec.name
    if result.is_error:
        text = hidden(printable(_text(result.content), LONGEST, lines=True).strip())
        raise ToolRaised(f"{name}: {text or _NO_TEXT}")
    structured = "structured_content" in result.model_fields_set
    if not structured or (result.structured_content is None and tool.output is None):
        if tool.output is not None:
            raise ToolResultError(f"{name} promises structured content and returned none")
        return _bounded(name, _unstructured(result.content), max_bytes)
    value = _bounded(name, result.structured_content, max_bytes)
    if tool.output is not None:
        _check(tool, value)
    return value["result"] if tool.wrapped else value


def _check(tool: ServerTool, value: object) -> None:
    name = tool.spec.name
    assert tool.output is not None
    try:
        why = misfit(value, tool.output)
    except TooMuchToCheck as error:
        raise ToolLimitError(f"{name}: the result is too large to check: {error}") from error
    if why is not None:
        raise ToolResultError(f"{name} returned what it does not promise: {why}")


def _bounded(name: str, value: Any, max_bytes: int) -> Any:
    check_size(name, len(to_json(value)), max_bytes, _SMALLER)
    return value


def _unstructured(content: Sequence[ContentBlock]) -> Any:
    if not content:
        return None
    parts = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True)
        for block in content
        if _text_of(block) is None
    ]
    text = _text(content)
    return {"text": text, "parts": parts} if parts else text


def _text(content: Sequence[ContentBlock]) -> str:
    texts = (_text_of(block) for block in content)
    return "\n".join(text for text in texts if text is not None)


def _text_of(block: ContentBlock) -> str | None:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    return None
