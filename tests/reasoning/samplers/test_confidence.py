"""Confidences of tokens and windows, against their definitions."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.reasoning.samplers.deepconf import ConfidenceWindows, proxy_confidence, token_confidence

VALUES = st.lists(st.floats(0, 30), min_size=1, max_size=40)


@given(VALUES, st.integers(1, 12))
def test_windows_are_those_of_the_definition(values: list[float], window: int) -> None:
    track = ConfidenceWindows(window)
    for value in values:
        track.add(value)
    groups = [fmean(values[i : i + window]) for i in range(len(values) - window + 1)]
    assert track.tokens == len(values)
    assert track.tail == pytest.approx(fmean(values[-window:]))
    if groups:
        assert track.lowest == pytest.approx(min(groups), abs=1e-9)
        count = max(1, int(len(groups) * 0.1))
        assert track.bottom() == pytest.approx(fmean(sorted(groups)[:count]), abs=1e-9)
    else:
        assert track.lowest is None
        assert track.lowest_of_all == track.bottom() == pytest.approx(fmean(values))


def test_the_lowest_window_is_known_without_reading_all_windows_again() -> None:
    class Counted(float):
        compared = 0

        def __add__(self, other: float) -> Counted:
            return Counted(float(self) + other)

        __radd__ = __add__

        def __sub__(self, other: float) -> Counted:
            return Counted(float(self) - other)

        def __truediv__(self, other: float) -> Counted:
            return Counted(float(self) / other)

        def __lt__(self, other: float) -> bool:
            Counted.compared += 1
            return float(self) < other

    track = ConfidenceWindows(4)
    for number in range(1000):
        track.add(Counted(number % 17))
        assert track.lowest is None or track.lowest >= 0
    assert 0 < Counted.compared <= 1000


def test_a_peaked_distribution_is_more_certain_than_a_flat_one() -> None:
    flat = [math.log(1 / 20)] * 20
    peaked = [math.log(0.99)] + [math.log(0.01 / 19)] * 19
    assert token_confidence(peaked) > token_confidence(flat) == pytest.approx(math.log(20))
    assert token_confidence([0.0, float("-inf")]) == 0
    assert token_confidence([]) == 0


def test_the_proxy_is_the_probability_of_what_was_sampled() -> None:
    assert proxy_confidence(math.log(0.25)) == pytest.approx(0.25)
    assert proxy_confidence(1e-9) == 1


def test_a_window_has_a_token() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ConfidenceWindows(0)
