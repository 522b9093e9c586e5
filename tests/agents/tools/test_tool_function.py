"""What `@tool` makes of a function: schemas from types and docstrings, and early refusals."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from weft.agents.tools import Tool, Toolbox, ToolContext, tool
from weft.core.errors import BuildError, ToolArgumentError
from weft.core.schema import at, mismatch

if TYPE_CHECKING:
    from decimal import Decimal


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Doc(BaseModel):
    title: str
    author: str | None = None


class Row(TypedDict, total=False):
    name: str


@tool
def search(
    query: str,
    limit: Annotated[int, Field(ge=1, description="at most so many")] = 5,
    *,
    kind: Literal["web", "news"] = "web",
    since: date | None = None,
) -> list[Doc]:
    """Search the library.

    Looks at titles only.

    Args:
        query: what to look for
        limit: not used, the annotation says it
        kind: where to look

    Returns:
        the documents, best first
    """
    return [Doc(title=f"{query} {kind} {since}")] * limit


def test_a_tool_is_still_the_function() -> None:
    assert search("a", 1)[0].title == "a web None"
    assert search.__name__ == "search"
    assert search.__doc__ is not None
    assert search.__doc__.startswith("Search the library.")
    assert list(inspect.signature(search).parameters) == ["query", "limit", "kind", "since"]


def test_an_async_tool_stays_async() -> None:
    @tool
    async def wait() -> int:
        return 1

    assert wait.is_async
    assert asyncio.run(wait()) == 1


def test_the_schema_says_what_signature_and_docstring_say() -> None:
    assert search.spec.name == "search"
    assert search.spec.description == "Search the library.\n\nLooks at titles only."
    assert search.spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "default": 5,
                "description": "at most so many",
            },
            "kind": {
                "type": "string",
                "enum": ["web", "news"],
                "default": "web",
                "description": "where to look",
            },
            "since": {
                "anyOf": [{"type": "string", "format": "date"}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_the_result_is_described_exactly() -> None:
    result = search.spec.result
    assert result is not None
    assert result["description"] == "the documents, best first"
    assert at(result, [0, "title"]) == {"type": "string"}
    with pytest.raises(LookupError, match="did you mean 'title'"):
        at(result, [0, "titel"])
    takes_author = {"type": "array", "items": {"type": "object", "required": ["author"]}}
    assert mismatch(result, takes_author) is None
    takes_body = {"type": "array", "items": {"type": "object", "required": ["body"]}}
    assert mismatch(result, takes_body) is not None


@pytest.mark.parametrize(
    "docstring",
    [
        "Sum.\n\nArgs:\n    first: the first one",
        "Sum.\n\nParameters\n----------\nfirst : int\n    the first one\n",
        "Sum.\n\n:param first: the first one",
    ],
)
def test_every_usual_style_of_docstring_is_read(docstring: str) -> None:
    def add(first: int) -> int:
        return first

    add.__doc__ = docstring
    spec = tool(add).spec
    assert spec.description == "Sum."
    assert spec.parameters["properties"]["first"]["description"] == "the first one"


def test_a_tool_without_docstring_or_annotated_result_is_one_too() -> None:
    @tool
    def silent():  # type: ignore[no-untyped-def]
        return 1

    assert silent.spec.description == ""
    assert silent.spec.result is None
    assert silent.spec.parameters["properties"] == {}


def test_all_usual_types_have_a_schema() -> None:
    @tool
    def takes(
        colour: Colour,
        point: Point,
        doc: Doc,
        row: Row,
        pair: tuple[int, str],
        names: dict[str, list[float]],
        either: int | str,
        anything: Any,
        schema: bool = True,
        model_dump: str = "",
        _x: float = 1.5,
    ) -> None:
        """Take all."""

    schema = takes.spec.parameters
    Draft202012Validator.check_schema(schema)
    assert takes.spec.result == {"type": "null"}
    arguments = {
        "colour": "red",
        "point": {"x": 1},
        "doc": {"title": "t"},
        "row": {},
        "pair": [1, "a"],
        "names": {"a": [0.5]},
        "either": "x",
        "anything": [None],
    }
    validator = Draft202012Validator(schema)
    assert validator.is_valid(arguments)
    assert not validator.is_valid(arguments | {"colour": "green"})
    values = takes.signature.parameters.decode(
        "takes", takes.signature.parameters.encode("takes", arguments)
    )
    assert values["colour"] is Colour.RED
    assert values["point"] == Point(1.0)
    assert values["doc"] == Doc(title="t")
    assert values["pair"] == (1, "a")
    assert "schema" not in values  # left to the function's own default


@dataclass
class Open:
    secret: object = field(default_factory=object)


def test_a_default_that_json_lacks_is_left_out_of_the_schema() -> None:
    @tool
    def odd(value: object = Open()) -> None:
        """Odd."""

    assert odd.spec.parameters["properties"]["value"] == {}


def test_the_context_is_no_parameter() -> None:
    @tool
    def talk(text: str, context: ToolContext, also: ToolContext | None = None) -> None:
        """Talk."""

    assert list(talk.spec.parameters["properties"]) == ["text"]


def test_options_are_kept() -> None:
    @tool(name="renamed", pure=True, timeout_s=2, resource="disk")
    def original() -> None:
        """Do nothing."""

    assert (original.spec.name, original.spec.pure) == ("renamed", True)
    assert (original.timeout_s, original.resource, original.isolation) == (2, "disk", None)
    assert original.named("other").spec.name == "other"
    assert original.spec.name == "renamed"


def test_a_bound_method_can_be_a_tool() -> None:
    class Shop:
        def price(self, item: str) -> int:
            """Look a price up."""
            return len(item)

    assert list(tool(Shop().price).spec.parameters["properties"]) == ["item"]


def test_a_wrapped_function_shows_the_signature_of_the_inner_one() -> None:
    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @traced
    def inner(number: int) -> int:
        """Inner."""
        return number

    assert list(inner.spec.parameters["properties"]) == ["number"]


def with_args(*numbers: int) -> None: ...
def with_kwargs(**numbers: int) -> None: ...
def positional(number: int, /) -> None: ...
def bare(number) -> None: ...  # type: ignore[no-untyped-def]
def unresolved(number: Decimal) -> None: ...
def indescribable(number: int, call: Callable[[], int]) -> None: ...
def unserialisable(number: int) -> Callable[[], int]: ...  # type: ignore[empty-body]
def field_default(number: int = Field(3)) -> None: ...


def yields() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (with_args, "*numbers"),
        (with_kwargs, "**numbers"),
        (positional, "positional-only"),
        (bare, "parameter 'number' has no annotation (write number: str"),
        (unresolved, "not under TYPE_CHECKING"),
        (indescribable, "parameter 'call'"),
        (unserialisable, "the result"),
        (field_default, "Annotated[..., Field(...)]"),
        (yields, "return a list"),
    ],
)
def test_what_json_cannot_call_is_refused_at_once(function: Callable[..., Any], says: str) -> None:
    with pytest.raises(BuildError) as caught:
        tool(function)
    assert says in str(caught.value)
    line = function.__code__.co_firstlineno
    assert f"tool {function.__name__} (test_tool_function.py:{line})" in str(caught.value)


@pytest.mark.parametrize("thing", [len, Doc, functools.partial(print), 3])
def test_only_functions_become_tools(thing: Any) -> None:
    with pytest.raises(BuildError, match="is not a function"):
        tool(thing)


@pytest.mark.parametrize("options", [{"name": "two words"}, {"name": ""}, {"timeout_s": 0}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        tool(**options)(search.function)


def test_a_tool_shows_its_name() -> None:
    assert repr(search) == "<tool search>"
    assert isinstance(search, Tool)


def test_a_default_of_none_may_be_given_as_well() -> None:
    @tool
    def book(name: str, date: str = None, tags: list[str] = None) -> Any:  # type: ignore[assignment] # noqa: RUF013
        return [name, date, tags]

    properties = book.spec.parameters["properties"]
    assert properties["date"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert book.spec.parameters["required"] == ["name"]
    box = Toolbox(book)
    assert asyncio.run(box.call("book", {"name": "a", "date": None})) == ["a", None, None]
    with pytest.raises(ToolArgumentError, match="date"):
        asyncio.run(box.call("book", {"name": "a", "date": 3}))


def test_a_whole_number_may_be_written_with_a_point() -> None:
    @tool
    def repeat(times: int, each: list[int], scale: float = 1.0) -> Any:
        return [times, each, scale, [type(one).__name__ for one in (times, *each, scale)]]

    box = Toolbox(repeat)
    given = {"times": 3.0, "each": [1.0, 2], "scale": 2.0}
    assert asyncio.run(box.call("repeat", given)) == [
        *(3, [1, 2], 2.0),
        ["int", "int", "int", "float"],
    ]
    with pytest.raises(ToolArgumentError, match="times should be a valid integer"):
        asyncio.run(box.call("repeat", {"times": 3.5, "each": []}))
