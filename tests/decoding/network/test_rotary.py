"""Rotation and merge against attention over all keys at once."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.network.rotary import Rotary, rotate
from weft.decoding.network.segments import (
    attend_with_lse,
    attend_with_lse_reference,
    merge_attention,
)

WIDTH = 16
ROTARY = Rotary(10000.0 ** (-torch.arange(0, WIDTH, 2) / WIDTH))


def turned(vectors: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return rotate(vectors, ROTARY.turns(by))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), there=st.integers(-4000, 4000), more=st.integers(-4000, 4000))
def test_turns_add_up_and_turn_back(seed: int, there: int, more: int) -> None:
    vectors = torch.randn(3, 1, WIDTH, generator=torch.Generator().manual_seed(seed))
    first = turned(vectors, torch.tensor([there]))
    torch.testing.assert_close(turned(first, torch.tensor([-there])), vectors, rtol=0, atol=1e-5)
    both = turned(vectors, torch.tensor([there + more]))
    torch.testing.assert_close(turned(first, torch.tensor([more])), both, rtol=0, atol=1e-5)


def test_a_turn_by_nothing_changes_nothing_and_keeps_the_dtype() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        vectors = torch.randn(2, 3, WIDTH).to(dtype)
        assert torch.equal(turned(vectors, torch.zeros(3)), vectors)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    queries=st.integers(1, 4),
)
def test_turned_queries_on_blocks_are_one_attention(
    seed: int, lengths: list[int], queries: int
) -> None:
    """Each block's keys stand at 0, 1, ...; in the view the blocks follow one another."""
    source = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    plain = torch.randn(2, total, WIDTH, generator=source)
    values = torch.randn(2, total, WIDTH, generator=source)
    asked = torch.randn(2, queries, WIDTH, generator=source)
    at = total - 1

    whole = turned(plain, torch.arange(total))
    own = turned(asked, torch.full((queries,), at))
    expected = torch.nn.functional.scaled_dot_product_attention(own, whole, values)

    outputs, sums, start = [], [], 0
    for length in lengths:
        part = slice(start, start + length)
        keys = turned(plain[:, part], torch.arange(length))
        query = turned(asked, torch.full((queries,), at - start))
        found, lse = attend_with_lse(
            query[None], keys[None], values[None, :, part], None, WIDTH**-0.5
        )
        outputs.append(found[0])
        sums.append(lse[0])
        start += length
    merged = merge_attention(torch.stack(outputs, dim=2), torch.stack(sums, dim=2))
    torch.testing.assert_close(merged, expected, rtol=1e-5, atol=1e-5)


def test_a_part_without_keys_weighs_nothing() -> None:
    outputs = torch.tensor([[1.0, 2.0], [7.0, 9.0]])
    lse = torch.tensor([3.0, float("-inf")])
    assert torch.equal(merge_attention(outputs, lse), outputs[0])


def test_large_scores_do_not_overflow() -> None:
    outputs = torch.tensor([[1.0], [2.0]])
    assert merge_attention(outputs, torch.tensor([5000.0, 4000.0])).item() == 1.0
    assert merge_attention(outputs, torch.tensor([-5000.0, -5000.0])).item() == pytest.approx(1.5)


@pytest.mark.parametrize("masked", [False, True])
def test_the_fast_way_is_the_plain_way(masked: bool) -> None:
    source = torch.Generator().manual_seed(1)
    queries = torch.randn(1, 3, 5, WIDTH, generator=source)
    keys, values = torch.randn(2, 1, 3, 40, WIDTH, generator=source)
    hidden = torch.arange(40) > torch.arange(5)[:, None] + 3
    mask = torch.zeros(1, 1, 5, 40).masked_fill_(hidden, float("-inf")) if masked else None
    for fast, plain in zip(
        attend_with_lse(queries, keys, values, mask, 0.3),
        attend_with_lse_reference(queries, keys, values, mask, 0.3),
        strict=True,
    ):
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
