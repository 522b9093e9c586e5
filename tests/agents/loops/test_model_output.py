from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.agents.chat.model_output import decode_json, find_object, first_json
from weft.core.errors import ModelOutputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```", "  {}\n"]))
def test_json_is_read_with_what_models_put_around_it(value: Any, around: str) -> None:
    assert decode_json(around.replace("{}", json.dumps(value)), "it") == value


@given(VALUES.filter(lambda value: isinstance(value, (dict, list))))
def test_what_follows_a_call_is_not_its_business(value: Any) -> None:
    assert first_json(f"{json.dumps(value)}\nResults:\n1. made up") == value


def test_a_second_object_is_not_lost_in_silence() -> None:
    with pytest.raises(ModelOutputError, match="line of its own"):
        first_json('{"a": 1}\n{"b": 2}')


@pytest.mark.parametrize(
    "text", ["", "{", "nothing", '{"a": NaN}', "[" * 100_000, "1" * 5000, '{"a": 1} and {"b": 2}']
)
def test_what_is_no_json_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ModelOutputError, match="the answer is not JSON"):
        decode_json(text, "the answer")


def test_raw_newlines_in_texts_are_let_through() -> None:
    assert decode_json('{"a": "two\nlines"}', "it") == {"a": "two\nlines"}


@given(st.text(alphabet="ab {}\n\"'", max_size=30))
def test_an_object_is_found_in_the_middle_of_talk(talk: str) -> None:
    wanted = {"next": {"answer": "{x}"}}
    found = find_object(["next"], talk.replace("{", "(") + json.dumps(wanted) + talk)
    assert found == wanted


def test_other_objects_are_passed_over() -> None:
    assert find_object(["next"], 'so {"a": {"b": 1}} then {"next": 2} and {"next": 3}') == {
        "next": 2
    }
    assert find_object(["next"], '{"a": 1}') is None
    assert find_object(["next"], "{" * 100_000) is None
