"""What a call returns, by what the server sends."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.types import (
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from weft.agents.mcp.listing import ServerTool
from weft.agents.mcp.result import value_of
from weft.core.errors import ToolLimitError, ToolRaised, ToolResultError
from weft.core.values import JsonSchema, ToolSpec

OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def value(
    *content: Any,
    structured: Any = ...,
    output: JsonSchema | None = None,
    wrapped: bool = False,
    is_error: bool = False,
    most: int = 1000,
) -> Any:
    given = {} if structured is ... else {"structured_content": structured}
    result = CallToolResult(content=list(content), is_error=is_error, **given)
    tool = ServerTool("t", ToolSpec("t", "", {}), output, wrapped)
    return value_of(tool, result, most, lambda text: text.replace("secret", "$KEY"))


def text(said: str) -> TextContent:
    return TextContent(text=said)


def test_structured_content_comes_first() -> None:
    assert value(text("{}"), structured={"n": 1}, output=OUTPUT) == {"n": 1}
    assert value(text("one"), structured={"n": 1}) == {"n": 1}
    assert value(structured={"result": 7}, output={}, wrapped=True) == 7


def test_without_it_the_texts_are_joined() -> None:
    assert value() is None
    assert value(text("")) == ""
    assert value(text("a"), text("b")) == "a\nb"
    assert value(text("a"), structured=None) == "a"
    page = TextResourceContents(uri="file:///a", text="inside")
    assert value(EmbeddedResource(resource=page)) == "inside"


def test_what_is_no_text_comes_beside_it() -> None:
    image = ImageContent(data="aGk=", mime_type="image/png")
    part = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert value(text("a"), image) == {"text": "a", "parts": [part]}


@pytest.mark.parametrize("structured", [{"n": "x"}, {}, [], 1, None])
def test_what_does_not_fit_its_schema_is_refused(structured: object) -> None:
    with pytest.raises(ToolResultError, match="promise"):
        value(structured=structured, output=OUTPUT)


def test_promised_structure_that_is_missing() -> None:
    with pytest.raises(ToolResultError, match="returned none"):
        value(text("{}"), output=OUTPUT)


def test_errors_are_told_without_secrets() -> None:
    with pytest.raises(ToolRaised, match=r"t: no \$KEY here") as raised:
        value(text("no secret here"), is_error=True)
    assert not raised.value.retryable
    with pytest.raises(ToolRaised, match="it says no more"):
        value(is_error=True)
    with pytest.raises(ToolRaised) as raised:
        value(text("x\x1b[31m" * 10_000), is_error=True)
    assert len(str(raised.value)) < 2_100
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "structured"), [([text("x" * 999)], ...), ([], {"n": "x" * 999})]
)
def test_more_than_is_allowed(content: list[TextContent], structured: Any) -> None:
    with pytest.raises(ToolLimitError, match="at most 1,000"):
        value(*content, structured=structured)
