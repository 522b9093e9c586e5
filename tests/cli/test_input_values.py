"""What people type on the command line becomes values, or an error that says what to type."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from weft.cli.options import inputs_file, json_object, pairs, seconds
from weft.core.errors import InputError, SourceError
from weft.workflow.history.answer_text import expected, parse_answer


def test_pairs_split_at_the_first_equals_sign() -> None:
    assert pairs(["a=1", "b=x=y", "c=", "a=2"], "--input") == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["", "a", "=1", " =1"])
def test_a_pair_needs_a_name(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="NAME=VALUE"):
        pairs([text], "--input")


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", 0.5), ("30s", 30), ("2m", 120), ("1.5h", 5400), ("7", 7)]
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "s", "-1s", "0", "1w", "1 s 2", "nan", "inf", "1e999"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="duration"):
        seconds(text)


def test_an_inputs_file_is_a_json_object(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"a": [1, 2]}')
    assert inputs_file(path) == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("text", "line", "column"), [('{\n "a": oops}', 2, 7), ("[1]", 1, 1), ("[" * 100_000, 1, 1)]
)
def test_a_broken_inputs_file_names_the_place(
    tmp_path: Path, text: str, line: int, column: int
) -> None:
    path = tmp_path / "in.json"
    path.write_text(text)
    with pytest.raises(SourceError) as caught:
        inputs_file(path)
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), line, column)


def test_an_inputs_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot read"):
        inputs_file(path)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("hello", {}, "hello"),
        ("12", {"type": "string"}, "12"),
        (" Yes ", {"type": "boolean"}, True),
        ("false", {"type": "boolean"}, False),
        ("12", {"type": "integer"}, 12),
        ("1.5", {"type": "number"}, 1.5),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("2", {"enum": ["red", "green"]}, "green"),
        ("red", {"enum": ["red", "green"]}, "red"),
        ("20", {"enum": [10, 20]}, 20),
    ],
)
def test_answers_have_the_type_that_is_asked_for(text: str, schema: dict, value: object) -> None:
    assert parse_answer(text, schema) == value


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("maybe", {"type": "boolean"}),
        ("1.5", {"type": "integer"}),
        ("x", {"type": "number"}),
        ("[1", {"type": "array"}),
        ("blue", {"enum": ["red", "green"]}),
        ("3", {"enum": ["red", "green"]}),
        ("0", {"enum": ["red", "green"]}),
        ("ab", {"type": "string", "minLength": 3}),
        ('{"a": 1}', {"type": "object", "required": ["b"]}),
    ],
)
def test_answers_that_do_not_fit_are_refused(text: str, schema: dict) -> None:
    with pytest.raises(InputError):
        parse_answer(text, schema)


def test_a_prompt_says_what_to_type() -> None:
    assert expected({"enum": ["red", 2]}) == "one of 1: red, 2: 2"
    assert expected({"type": "boolean"}) == "y or n"
    assert expected({}) == ""


def test_an_object_is_given_as_json_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"type": "string"}')
    for text in (str(file), ' {"type": "string"}'):
        assert json_object(text, "--schema") == {"type": "string"}
    with pytest.raises(SourceError, match="not JSON") as wrong:
        json_object('{"type": ', "--schema")
    assert wrong.value.file == "--schema"
    for text in ("[1]", str(tmp_path / "none.json")):
        with pytest.raises(typer.BadParameter, match="a JSON object or the name of a file"):
            json_object(text, "--schema")
