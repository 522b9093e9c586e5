"""Text that goes round in circles is told from text that only repeats something."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile import examples
from weft.agents.chat import repetition
from weft.agents.chat.repetition import repeats_itself


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
        ", ".join(map(str, range(1_000))),
        ", ".join(f'{{"name": "price", "arguments": {{"item": "{n}"}}}}' for n in range(50)),
        "\n".join(f"In {2000 + n} the town had {n * n} inhabitants." for n in range(50)),
        "\n".join(f"The temperature at noon was {n * 7 % 31} degrees." for n in range(50)),
    ],
)
def test_what_may_be_an_answer(text: str) -> None:
    assert not repeats_itself(text)


@pytest.mark.parametrize(
    "unit",
    ["Paris is the capital of France, and London of England, and ", "ha", "x", "-\n"],
)
def test_circles_are_found_wherever_they_begin_and_end(unit: str) -> None:
    said = f"It is this one: {unit * 300}"
    for end in range(len(said) - len(unit), len(said)):
        assert repeats_itself(said[:end])


@pytest.mark.parametrize("unit", ["again and again. ", "\nha ha ha ha. \n", "no, "])
def test_blanks_around_the_text_decide_nothing(unit: str) -> None:
    for times in range(4, 80):
        said = unit * times
        assert repeats_itself(said) == repeats_itself(said.strip())


def test_a_sentence_that_only_counts_on_goes_round_in_circles() -> None:
    said = "".join(f"{number}. London, Lyon, Rome, Paris, Milan, " for number in range(1, 60))
    assert not repeats_itself(said[:250])
    ends = [found.end() for found in re.finditer("Paris", said) if found.end() > 420]
    assert all(repeats_itself(said[:end]) for end in ends)


@given(st.integers(0, 10_000), st.integers(1, 400))
@examples(40)
def test_random_text_has_none_and_random_circles_have(seed: int, length: int) -> None:
    source = random.Random(seed)
    text = "".join(source.choices(string.ascii_letters + " ", k=3_000))
    assert not repeats_itself(text)
    assert repeats_itself(text + text[:length] * max(8, 600 // length))


TEXTS = st.lists(
    st.sampled_from(["ab", " the same.", "7. so it goes on and on, ", "x", "  ", "10"])
)


@given(TEXTS, st.integers(1, 60), st.integers(1, 300))
def test_the_end_of_a_long_text_is_judged_like_all_of_it(
    words: list[str], times: int, blanks: int
) -> None:
    """The oracle reads the text before the end, too."""
    end = "".join(words) * times
    whole = f"{'Once upon a time. ' * 400}{end}{' ' * blanks}"
    assert repeats_itself(whole) == (
        repetition._unit(whole.strip()) is not None or repetition._counts_on(whole.strip())
    )


def test_a_growing_text_is_read_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in characters: each check reads an end of bounded length."""
    read: list[int] = []
    judge = repetition.repeats_itself

    def counted(text: str) -> bool:
        read.append(len(text))
        return judge(text)

    monkeypatch.setattr(repetition, "repeats_itself", counted)
    detector = repetition.RepetitionDetector()
    for number in range(20_000):
        assert not detector.feed(f"word {number * 7919 % 10_007} ")
    assert len(read) <= 20_000 * 11 / 40
    assert max(read) == read[-1] <= 6_600
