"""Intervals of shares and of paired differences."""

from __future__ import annotations

import pytest

from evals.intervals import paired_difference, share_interval


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = share_interval([True] * 40 + [False] * 60)
    assert (low, high) == (pytest.approx(0.3094, abs=1e-4), pytest.approx(0.4980, abs=1e-4))
    assert share_interval([False] * 10)[0] == pytest.approx(0.0)
    assert share_interval([True] * 10)[1] == pytest.approx(1.0)


def test_a_difference_is_paired() -> None:
    one = [True, True, False, False] * 50
    assert paired_difference(one, one) == (0.0, 0.0, 0.0)
    other = [True, False, False, False] * 50
    centre, low, high = paired_difference(one, other)
    assert centre == 0.25
    assert (low, high) == (pytest.approx(0.19, abs=0.001), pytest.approx(0.31, abs=0.001))
    unpaired = [False] * 150 + [True] * 50
    assert paired_difference(one, unpaired)[1] < low
    with pytest.raises(ValueError, match=r"longer|shorter"):
        paired_difference(one, other[:3])
