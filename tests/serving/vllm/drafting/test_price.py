"""What a drafted token must be likely to be, from the times of passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.suffix_drafter import DraftCost


def after(rows: int, drafted: list[int], base_s: float, token_s: float, kept: float) -> float:
    """The price once passes of so many rows took `base_s` and `token_s` for each token."""
    price = DraftCost(0.05)
    for length in drafted * 50:
        read = rows * (1 + length)
        price.observe(read, base_s + token_s * read, round(rows * (1 + kept * length)))
    return price.least()


def test_one_row_may_draft_almost_anything_and_a_full_batch_only_what_is_sure() -> None:
    alone = after(1, [2, 4, 8], 0.02, 0.001, 0.5)
    eight = after(8, [2, 4, 8], 0.02, 0.001, 0.5)
    many = after(64, [2, 4, 8], 0.02, 0.001, 0.5)
    assert 0.05 <= alone < 0.2 < eight < many


def test_the_price_is_what_a_token_adds_times_the_present_speed() -> None:
    # 8 rows read 8 + 24 tokens in 0.052 s and write 20: 1 ms is worth 20 / 52 tokens
    price = DraftCost(0.0)
    for read in (24, 40) * 200:
        price.observe(read, 0.02 + 0.001 * read, 20)
    assert price.least() == pytest.approx(0.001 * 20 / 0.052, rel=0.02)


def test_before_it_knows_and_where_tokens_are_free_the_floor_holds() -> None:
    assert DraftCost(0.1).least() == 0.1
    assert after(16, [2, 4, 8], 0.02, 0.0, 0.5) == 0.05


def test_an_interruption_is_no_pass() -> None:
    price = DraftCost(0.0)
    for read in (2, 4) * 100:
        price.observe(read, 0.02 + 0.001 * read, 2)
    before = price.least()
    price.observe(4, 3600.0, 2)
    assert price.least() == before


@given(
    st.lists(st.tuples(st.integers(1, 500), st.floats(0, 10), st.integers(0, 500)), max_size=60),
    st.floats(0, 0.8),
)
def test_whatever_passes_take_it_is_a_chance(
    passes: list[tuple[int, float, int]], floor: float
) -> None:
    price = DraftCost(floor)
    for each in passes:
        price.observe(*each)
    assert floor <= price.least() <= max(floor, 0.8)
