from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.text.json_scanner import JsonScanner

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
containers = st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=4), values)


def refuses(text: str) -> bool:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return True
    return False


@given(containers, st.none() | st.integers(0, 3), st.text(max_size=5))
def test_it_ends_where_the_value_ends(value: Any, indent: int | None, rest: str) -> None:
    text = json.dumps(value, indent=indent)
    scanner = JsonScanner()
    size = scanner.feed(text + rest)
    if refuses(text):
        assert scanner.broken
    else:
        assert (size, scanner.complete) == (len(text), True)
        assert scanner.feed("{}") == 0


@given(st.sampled_from("[{"), st.text(alphabet='{}[]",:\\u0a1-.e \ntruefalsn', max_size=24))
def test_it_never_takes_for_broken_what_json_takes(opening: str, rest: str) -> None:
    text = opening + rest
    scanner = JsonScanner()
    size = sum(scanner.feed(char) for char in text)
    if refuses(text):
        return
    assert scanner.complete
    assert not text[size:].strip(" \t\r\n")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x", 0),
        ("{a", 1),
        ('{"a" 1', 5),
        ('{"a": "b" c', 10),
        ('{"a": 1]', 7),
        ("[1,,", 3),
        ("[}", 1),
        ('{"a": "\n', 7),
        ('["\\x', 3),
        ('["\\u12g', 6),
        ("[" * 300, 200),
    ],
)
def test_it_breaks_at_the_first_wrong_character(text: str, at: int) -> None:
    scanner = JsonScanner()
    assert scanner.feed(text) == at
    assert scanner.broken
