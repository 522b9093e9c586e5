"""Inputs: from texts by their declared types, and checked all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.workflow.case import loads
from weft.core.errors import InputError
from weft.workflow.document.spec.fields import (
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


def flow(inputs: str) -> weft.Flow:
    return loads("  a: {value: 1}", head=f"name: x\ninputs: {inputs}\n")


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("string", "3", "3"),
        ("string", '"x"', '"x"'),
        ("integer", "3", 3),
        ("number", "3.5", 3.5),
        ("boolean", "true", True),
        ("[string]", '["a", "b"]', ["a", "b"]),
        ("object", '{"a": 1}', {"a": 1}),
        ("{}", "3", 3),
        ("{}", "free text", "free text"),
        ("{type: [string, 'null']}", "null", None),
        ("{type: [string, integer]}", "x", "x"),
        ("{type: [string, 'null']}", "3", "3"),
        ("{enum: [a, 1]}", "1", 1),
    ],
)
def test_texts_by_declared_type(declared: str, text: str, value: object) -> None:
    assert flow(f"{{v: {declared}}}").coerce_inputs({"v": text}) == {"v": value}


@pytest.mark.parametrize(
    ("declared", "text", "message"),
    [
        ("integer", "three", "an integer"),
        ("[string]", "a, b", "a list"),
        ("object", "[" * 2000, "a mapping"),
        ("boolean", "yes", "a boolean"),
    ],
)
def test_texts_that_cannot_be_read(declared: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        flow(f"{{v: {declared}, w: integer}}").coerce_inputs({"v": text, "w": "x"})
    assert message in caught.value.message
    assert "`w`" in caught.value.message


def test_unknown_names_pass_through_to_the_check() -> None:
    made = flow("{topic: string}")
    given = made.coerce_inputs({"topci": "x"})
    with pytest.raises(InputError) as caught:
        made.start(given)
    assert "no input `topci`" in caught.value.message
    assert caught.value.hint == "did you mean `topic`?"


def test_defaults_fill_in() -> None:
    made = loads(
        '  a: {value: "{{ v }}{{ w }}"}', head="name: x\ninputs: {v: {default: 3}, w: string}\n"
    )
    assert made.run_sync(w="!").outputs == {"a": "3!"}
    with pytest.raises(InputError, match="not of type"):
        made.start({"w": 1})


@given(st.floats(0, 1e12, allow_nan=False))
def test_durations_come_back(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, 2**50))
def test_sizes_come_back(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("30s", 30), ("2m", 120), ("1.5h", 5400), ("1d", 86400), (3, 3), (" 2 s ", 2)],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 hour", "1e3s", "nan", True, None, [], "1s2m"])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
