"""Results as a model is shown them: one line each, bounded, failures included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.agents.agent import Observation
from weft.agents.chat.model_output import excerpt, text_of
from weft.agents.chat.observations import (
    BRIEF_CHARS,
    RESULT_CHARS,
    format_observation,
    format_observations,
)
from weft.core.errors import ToolRaised
from weft.core.events import Outcome

LONGEST_LINE = 1_000  # a line without its result


def observed(value: Any, number: int = 1, **arguments: Any) -> Observation:
    return Observation(number, "search", arguments, Outcome("succeeded", value))


@pytest.mark.parametrize(
    ("observation", "line"),
    [
        (observed("a\nb", query="tea"), '1. search(query="tea") -> "a\\nb"'),
        (observed({"n": [1, None]}, 12), '12. search() -> {"n": [1, null]}'),
        (observed("", n=3), '1. search(n=3) -> ""'),
        (
            Observation(2, "search", {}, Outcome("failed", None, ToolRaised("no\nnet").failure())),
            "2. search() -> failed: ToolRaised: no net",
        ),
        (
            Observation(2, "search", {}, Outcome("skipped", None, ToolRaised("of 1").failure())),
            "2. search() -> left out: ToolRaised: of 1",
        ),
        (Observation(2, "search", {}, Outcome("skipped")), "2. search() -> left out on purpose"),
        (
            Observation(3, "search", {}, Outcome("cancelled", None, ToolRaised("late").failure())),
            "3. search() -> cancelled: ToolRaised: late",
        ),
    ],
)
def test_a_call_and_what_it_came_to(observation: Observation, line: str) -> None:
    assert format_observation(observation) == line


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_foreign_text_cannot_leave_its_line(value: str, arguments: dict[str, str]) -> None:
    line = format_observation(Observation(1, value or "x", arguments, Outcome("succeeded", value)))
    assert "\n" not in line
    assert "\r" not in line
    line.encode("utf-8")


def test_a_long_result_is_shortened_and_its_length_said() -> None:
    line = format_observation(observed("x" * 10_000_000 + "end"))
    assert len(line) < RESULT_CHARS + 200
    assert "[... 9,996,003 of 10,000,003 characters left out ...]" in line
    assert line.endswith('end"')
    assert "characters left out" in format_observation(observed(list(range(1_000_000))))


def test_long_names_and_arguments_are_shortened_too() -> None:
    line = format_observation(
        Observation(1, "t" * 10**6, {"q" * 10**6: "v" * 10**6}, Outcome("succeeded", 1))
    )
    assert len(line) < LONGEST_LINE


@given(st.text(), st.integers(10, 100))
def test_an_excerpt_is_bounded_and_keeps_what_fits(text: str, chars: int) -> None:
    short = excerpt(text, chars)
    assert len(short) <= chars + 70
    if len(text) <= chars:
        assert short == text.encode("utf-8", "replace").decode()
    else:
        assert short.startswith(text[: chars // 2].encode("utf-8", "replace").decode())


def test_half_characters_do_not_get_out() -> None:
    assert excerpt("a\ud800b", 10) == "a?b"


class Shy:
    def __repr__(self) -> str:
        raise KeyError("no")


def test_what_json_cannot_hold_has_a_text() -> None:
    assert text_of([Shy()]) == "a list that JSON cannot hold"
    endless: list[Any] = []
    endless.append(endless)
    assert text_of(endless) == "a list that JSON cannot hold"
    assert text_of({1, 2}) == "[1, 2]"


def test_the_oldest_results_give_way_first() -> None:
    calls = [observed(f"{number}" * 1_000, number) for number in range(1, 5)]
    full = sum(len(format_observation(one)) for one in calls)
    assert format_observations(calls, full) == [format_observation(one) for one in calls]
    first, *others = format_observations(calls, full - 1)
    assert first == format_observation(calls[0], BRIEF_CHARS)
    assert others == [format_observation(one) for one in calls[1:]]


def test_what_has_no_room_at_all_is_left_out_and_said() -> None:
    calls = [observed("x", number) for number in range(1, 1_001)]
    lines = format_observations(calls, 200)
    assert sum(map(len, lines)) < 300
    assert lines[0] == f"({1_001 - len(lines):,} earlier results are left out: they are too long)"
    assert lines[-1] == '1000. search() -> "x"'


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(200, 3_000))
def test_together_they_are_as_long_as_they_may_be(values: list[str], chars: int) -> None:
    lines = format_observations([observed(value, n) for n, value in enumerate(values, 1)], chars)
    least = len(format_observation(observed(values[-1], len(values)), BRIEF_CHARS)) if values else 0
    assert sum(map(len, lines)) <= max(chars, least) + 80
    assert len(lines) <= len(values)


def test_equal_values_are_shown_equally() -> None:
    assert format_observation(observed(json.loads('{"a": 1}'))) == format_observation(
        observed({"a": 1})
    )
