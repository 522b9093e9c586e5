"""Text that goes round in circles is told from text that only repeats something."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.agents.loops.repetition import repetition


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes, yes, yes, yes.",
        "ha" * 50,
        "0, " * 40,
        "-" * 80,
        "Tea is cheaper than coffee, and milk is cheaper than tea. " * 3,
        "x" * 400 + ".",
        "\n".join(f"{number}. price(item={number})" for number in range(500)),
    ],
)
def test_what_may_be_an_answer(text: str) -> None:
    assert repetition(text) is None


@pytest.mark.parametrize(
    "unit",
    ["Paris is the capital of France, and London of England, and ", "ha", "x", "-\n"],
)
def test_circles_are_found_wherever_they_begin_and_end(unit: str) -> None:
    said = f"It is this one: {unit * 300}"
    for end in range(len(said) - len(unit), len(said)):
        begin = repetition(said[:end])
        assert begin is not None
        assert begin <= len("It is this one: ") + 2 * len(unit)


@given(st.integers(0, 10_000), st.integers(1, 400))
@examples(40)
def test_random_text_has_none_and_random_circles_have(seed: int, length: int) -> None:
    source = random.Random(seed)
    text = "".join(source.choices(string.ascii_letters + " ", k=3_000))
    assert repetition(text) is None
    assert repetition(text + text[:length] * max(8, 600 // length)) is not None
