"""Rules of a supervisor: what passes, what does not, and how they nest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.diffusion.guidance.supervisor import (
    DynamicAcceptance,
    ExactAcceptance,
    RelativeAcceptance,
)

LAWS = st.lists(st.floats(-8.0, 8.0, width=32), min_size=2, max_size=8)


def logits(*probabilities: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.log(np.array(probabilities, dtype=np.float32))


def test_exact_takes_the_lowest_of_equals() -> None:
    assert ExactAcceptance().accepts(logits(0.4, 0.4, 0.2), 0)
    assert not ExactAcceptance().accepts(logits(0.4, 0.4, 0.2), 1)


@pytest.mark.parametrize(
    ("law", "token", "passes"),
    [
        ((0.6, 0.4), 1, True),
        ((0.7, 0.3), 1, False),  # less than half as likely
        ((0.4, 0.3, 0.3), 2, True),  # as likely as the second
        ((0.36, 0.34, 0.3), 2, False),  # the third
    ],
)
def test_relative_wants_rank_and_share(law: tuple[float, ...], token: int, passes: bool) -> None:
    assert RelativeAcceptance().accepts(logits(*law), token) is passes


def test_dynamic_asks_less_where_all_is_open() -> None:
    sure, unsure = logits(0.8, 0.1, 0.05, 0.05), logits(0.25, 0.25, 0.25, 0.25)

    assert not DynamicAcceptance().accepts(sure, 1)
    assert DynamicAcceptance().accepts(unsure, 1)


@given(LAWS)
def test_what_is_exact_passes_all_rules(values: list[float]) -> None:
    row = np.array(values, dtype=np.float32)
    best = int(row.argmax())

    assert ExactAcceptance().accepts(row, best)
    assert RelativeAcceptance(1, 1.0).accepts(row, best)
    # the likeliest is never less likely than exp(-entropy)
    assert DynamicAcceptance(1.0, 0.999).accepts(row, best)


@given(LAWS, st.integers(0, 7))
def test_a_looser_rule_accepts_no_less(values: list[float], at: int) -> None:
    row, token = np.array(values, dtype=np.float32), at % len(values)

    if RelativeAcceptance(2, 0.5).accepts(row, token):
        assert RelativeAcceptance(3, 0.25).accepts(row, token)
    if DynamicAcceptance(0.5, 0.6).accepts(row, token):
        assert DynamicAcceptance(0.3, 0.6).accepts(row, token)


@pytest.mark.parametrize("values", [(0, 0.5), (1, -0.1), (1, 1.5), (1, float("nan"))])
def test_nothing_else_is_a_rule(values: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="passes"):
        RelativeAcceptance(*values)


def test_no_more_than_certain() -> None:
    with pytest.raises(ValueError, match="passes"):
        DynamicAcceptance(1.5)
