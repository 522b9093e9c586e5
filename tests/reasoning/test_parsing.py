"""What models write is read with patience, and never guessed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.reasoning.evidence import check_markers, without_markers
from weft.reasoning.mapreduce.note import read_note
from weft.reasoning.mirage.chain import read_step
from weft.reasoning.mirage.prompts import ChainFinding
from weft.reasoning.mirage.strategy import believed
from weft.reasoning.parsing import fence, object_with, read_labels, read_points


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1. Eat\n2) Sleep\n3: Run", ("Eat", "Sleep", "Run")),
        ("Sure!\n**1. Eat**\n- a detail\n### 2. Sleep:\nfine", ("Eat", "Sleep")),
        ("- Eat\n* Sleep\n\u2022 Run", ("Eat", "Sleep", "Run")),
        ("Step 1: Eat\nPoint 2. Sleep", ("Eat", "Sleep")),
        ("1. Eat 2. Sleep 3. Run", ("Eat", "Sleep", "Run")),
        ("1. \n2. ...\n3. Eat", ("Eat",)),
        ("In 1931. It opened", ()),
        ("", ()),
    ],
)
def test_lists_are_read_however_they_are_written(text: str, points: tuple[str, ...]) -> None:
    assert read_points(text, most=9, chars=99).points == points


def test_what_is_left_out_of_a_list_is_counted() -> None:
    read = read_points("1. a\n2. A!\n3. b\n4. c\n5. d", most=2, chars=99)
    assert (read.points, read.duplicates, read.left_out) == (("a", "b"), 1, 2)
    assert read_points("1. " + "x" * 50, most=1, chars=5).points == ("xxxxx",)


@given(st.text(max_size=200), st.integers(0, 5))
def test_no_text_breaks_the_reading_of_a_list(text: str, most: int) -> None:
    points = read_points(text, most=most, chars=20).points
    assert len(points) <= most
    assert all(0 < len(point) <= 20 for point in points)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here: ```json\n{"x": 0} {"a": "two\nlines"}```', {"a": "two\nlines"}),
        ('{"a": "one", "b": 2, "c": "cut o', {"a": "one", "b": 2, "c": "cut o"}),
        ('```json\n{"a": "q\\"uo\\u00e9", "b": "x\\', {"a": 'q"uo\u00e9', "b": "x"}),
        ('{"a": "bad \\x escape"', {"a": "bad \\x escape"}),
        ('it said "a": "one"', None),
        ('{"b": 1}', None),
        ("{" * 5000, None),
        ('{"a": NaN}', None),
        ("", None),
    ],
)
def test_objects_are_found_even_cut_off(text: str, found: dict[str, object] | None) -> None:
    assert object_with(("a",), text) == found


@given(st.text(st.sampled_from('{}":,a1\\ \n[]'), max_size=80))
def test_no_text_breaks_the_reading_of_an_object(text: str) -> None:
    found = object_with(("a",), text)
    assert found is None or "a" in found


@pytest.mark.parametrize(
    "fill", [" ", "\t", "\n", " \n", "*", "1. ", "[", "`", "{", '"', "<think>", "a and "]
)
def test_long_runs_of_anything_are_read_in_no_time(fill: str) -> None:
    text = fill * (40_000 // len(fill)) + "x"
    before = time.process_time()
    read_points(text, most=9, chars=99)
    read_labels(text, ("Answer", "Look up"))
    object_with(("a",), text)
    read_note(text)
    read_step(f"Connect: {text}")
    believed([ChainFinding("a", "b")], text)
    check_markers(without_markers(text), ())
    assert time.process_time() - before < 30  # a second is plenty; quadratic ones take minutes


def test_labels_are_read_in_their_order() -> None:
    text = "x\n**Quote**: one\n2. quote: two\nlines\nAnswer : 3\nNot a Quote: here"
    assert read_labels(text, ("Quote", "Answer")) == {
        "Quote": ["one", "two\nlines"],
        "Answer": ["3\nNot a Quote: here"],
    }
    assert read_labels("Answers: 3", ("Answer",)) == {}


@given(st.text(st.sampled_from("`\na "), max_size=40))
def test_no_text_closes_its_fence(text: str) -> None:
    first, *inside, last = fence(text).split("\n")
    assert first == last
    assert set(first) == {"`"}
    assert all(first not in line for line in inside)
