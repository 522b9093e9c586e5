"""Whatever the arguments: each stays in its place, and can be read back from there."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.openapi.api_server import document
from tests.profile import examples
from weft.agents.openapi.address import origin_of
from weft.agents.openapi.credentials import RequestCredentials
from weft.agents.openapi.document import read_document
from weft.agents.openapi.operation import find, read
from weft.agents.openapi.parameter import ApiParameter
from weft.agents.openapi.request import build_request, validate_arguments
from weft.core.errors import ToolArgumentError

DOCUMENT = read_document(document())
ECHO = read(DOCUMENT, find(DOCUMENT, "echo"), "echo", "1")
ORIGIN, _ = origin_of("https://shop.example")
WORDS = st.text(max_size=8) | st.sampled_from(
    ["..", ".", "/", "%2e%2e", "{name}", "a b", "\r\nX: y"]
)


@given(
    st.fixed_dictionaries(
        {"name_path": WORDS},
        optional={
            "name_query": WORDS,
            "X_Tag": WORDS,
            "crumb": WORDS,
            "ids": st.lists(WORDS | st.integers() | st.booleans(), max_size=3),
            "filter": st.dictionaries(WORDS, WORDS, max_size=3),
        },
    )
)
@examples(300)
def test_an_argument_cannot_leave_its_place(arguments: dict[str, Any]) -> None:
    try:
        request = build_request(
            ECHO, ORIGIN, "/v1", validate_arguments(ECHO, arguments), RequestCredentials()
        )
    except ToolArgumentError:
        return
    assert request.target.isascii()
    assert request.target.isprintable()
    assert " " not in request.target
    path, _, query = request.target.partition("?")
    empty, version, echo, name = path.split("/")
    assert (empty, version, echo) == ("", "v1", "echo")
    assert unquote(name) == arguments["name_path"]
    assert unquote(name) not in (".", "..")
    pairs = parse_qsl(query, keep_blank_values=True)
    expected = [("name", arguments["name_query"])] if "name_query" in arguments else []
    assert [pair for pair in pairs if pair[0] == "name"] == expected
    assert len(pairs) == len(expected) + len(arguments.get("ids", ())) + len(
        arguments.get("filter", ())
    )
    assert all(text.isascii() and text.isprintable() for text in request.headers.values())
    assert set(request.headers) <= {"Accept", "X-Tag", "Cookie"}


def parameter(place: Any, style: str, explode: bool, *, is_json: bool = False) -> ApiParameter:
    return ApiParameter("p", "p", place, style, explode, is_json, False, {}, "")


@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", True, "a b", "p=a%20b"),
        ("form", True, [1, "x,y"], "p=1&p=x%2Cy"),
        ("form", False, [1, "x,y"], "p=1,x%2Cy"),
        ("spaceDelimited", False, [1, 2], "p=1%202"),
        ("pipeDelimited", False, [1, 2], "p=1%7C2"),
        ("form", True, {"a": 1, "b": None}, "a=1&b="),
        ("form", False, {"a": 1, "b": 2}, "p=a,1,b,2"),
        ("deepObject", True, {"a": 1.5, "b": False}, "p%5Ba%5D=1.5&p%5Bb%5D=false"),
    ],
)
def test_the_styles_of_a_query(style: str, explode: bool, value: Any, query: str) -> None:
    """The table of OpenAPI 3.1, "Style Examples"."""
    pairs = parameter("query", style, explode).pairs(value)
    assert "&".join(f"{name}={text}" for name, text in pairs) == query


@pytest.mark.parametrize(
    ("explode", "value", "text"),
    [
        (False, ["blue", "black"], "blue,black"),
        (False, {"R": 100, "G": 200}, "R,100,G,200"),
        (True, {"R": 100, "G": 200}, "R=100,G=200"),
        (False, True, "true"),
    ],
)
def test_the_style_of_paths_and_headers(explode: bool, value: Any, text: str) -> None:
    for place in ("path", "header"):
        assert parameter(place, "simple", explode).text(value) == text


def test_json_stays_json() -> None:
    assert parameter("query", "form", True, is_json=True).pairs({"a": [1]}) == [
        ("p", "%7B%22a%22%3A%20%5B1%5D%7D")
    ]
    assert parameter("header", "simple", False, is_json=True).text([1]) == "[1]"
