"""How many cases a study needs."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import InputError
from weft.evaluation.case import Case
from weft.optimisation.data_size import cases_for, shortage
from weft.optimisation.study import StudyCases


def chance(held_out: int, cases: int, share: Fraction) -> Fraction:
    """The exact probability of at least so many held-out ones."""
    return sum(
        (
            comb(cases, count) * share**count * (1 - share) ** (cases - count)
            for count in range(held_out, cases + 1)
        ),
        Fraction(0),
    )


@given(st.integers(1, 40), st.tuples(*[st.integers(1, 9)] * 3))
def test_it_is_the_first_ten_with_which_enough_are_held_out(
    held_out: int, shares: tuple[int, int, int]
) -> None:
    found, share = cases_for(held_out, shares), Fraction(shares[-1], sum(shares))
    assert found is not None
    assert found % 10 == 0
    assert chance(held_out, found, share) >= 0.95
    assert chance(held_out, found - 10, share) < 0.95


@pytest.mark.parametrize(
    ("shares", "cases"), [((40, 30, 30), 130), ((0, 0, 1), 30), ((50, 50, 0), None)]
)
def test_of_usual_and_of_extreme_shares(shares: tuple[int, ...], cases: int | None) -> None:
    assert cases_for(shares=shares) == cases


def test_what_is_said_of_too_few() -> None:
    assert shortage({"held_out": 30}) == ""
    assert "about 130 cases" in shortage({"held_out": 29})
    assert "split 40/30/30" in shortage({"held_out": 29})
    assert "give held_out a share" in shortage({"held_out": 0}, (1, 1, 0))
    cases = [Case(f"{n}", {}, split=split) for n, split in enumerate(["dev"] * 3 + ["train"])]
    with pytest.raises(InputError, match=r"3 dev, 0 held_out; .* about 130 cases"):
        StudyCases.of(cases)
