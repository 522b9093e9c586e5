"""The answer of a tool, as plain data of bounded size: structured content first, else its texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from mcp.types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    TextContent,
    TextResourceContents,
)
from pydantic_core import to_json

from weft.agents.foreign import shown
from weft.agents.mcp.failure import LONGEST
from weft.agents.mcp.listing import ServerTool
from weft.core.errors import ToolLimitError, ToolRaised, ToolResultError
from weft.validation import TooMuchToCheck, misfit

_NO_TEXT: Final = "it says no more"


def value_of(
    tool: ServerTool, result: CallToolResult, max_bytes: int, hidden: Callable[[str], str]
) -> Any:
    """What the call returns: structured content where there is some, checked against its schema.

    Otherwise the texts, joined by line breaks; None where there is nothing; and where there is
    more than text `{text, parts}` with everything else as the protocol writes it. `hidden` takes
    secrets out of what the server says of an error.

    Raises: `ToolRaised`, `ToolResultError`, `ToolLimitError`.
    """
    name = tool.spec.name
    if result.is_error:
        said = hidden(shown(_text(result.content), LONGEST, lines=True).strip())
        raise ToolRaised(f"{name}: {said or _NO_TEXT}")
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
    size = len(to_json(value))
    if size > max_bytes:
        raise ToolLimitError(
            f"{name} returned {size:,} bytes, at most {max_bytes:,} are allowed",
            hint="ask for less, or raise max_result",
        )
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
