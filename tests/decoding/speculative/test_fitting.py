from __future__ import annotations

import pytest

from weft.decoding.speculative.pass_costs import pays_most

EXPECTED = {1: 1.4, 2: 1.6, 4: 1.8, 8: 1.9}


def test_where_rows_cost_nothing_the_largest_pays() -> None:
    assert pays_most(EXPECTED, lambda rows: 1.0) == 8


def test_where_rows_cost_what_they_cost_the_smallest_pays() -> None:
    assert pays_most(EXPECTED, lambda rows: float(rows)) == 1


def test_in_between() -> None:
    assert pays_most(EXPECTED, lambda rows: 1.0 + 0.05 * (rows - 1)) == 4


def test_equals_and_nothing() -> None:
    assert pays_most({3: 2.0, 1: 2.0}, lambda rows: 1.0) == 1
    with pytest.raises(ValueError, match="empty"):
        pays_most({}, lambda rows: 1.0)
