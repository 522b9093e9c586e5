"""Which attentions run together, and what belongs to which rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.drafters.model.layer_parallel.shard import ShardLayout, rank_slice

HERE = Path("model")


@given(st.integers(1, 80), st.integers(1, 9))
def test_groups_are_all_layers_in_order_and_the_ends_stand_alone(layers: int, group: int) -> None:
    groups = ShardLayout(HERE, group=group).groups(layers)
    assert [layer for layers_of in groups for layer in layers_of] == list(range(layers))
    assert len(groups[0]) == len(groups[-1]) == 1
    assert all(len(one) <= group for one in groups)
    assert all(len(one) == group for one in groups[1:-2]), "only the last inner one may be short"


def test_the_groups_of_a_small_model() -> None:
    expected = (range(1), range(1, 4), range(4, 7), range(7, 8), range(8, 9))
    assert ShardLayout(HERE, group=3).groups(9) == expected


@given(st.integers(1, 500), st.integers(1, 9))
def test_slices_are_all_rows_once(total: int, ranks: int) -> None:
    rows = [row for rank in range(ranks) for row in range(total)[rank_slice(total, rank, ranks)]]
    assert rows == list(range(total))


def test_a_layout_travels_as_json() -> None:
    layout = ShardLayout(
        HERE, ranks=4, group=2, layers=5, threads=3, device="cuda", dtype="bfloat16"
    )
    assert ShardLayout.from_json(layout.to_json()) == layout
    assert layout.options(2).device == "cuda:2"
    assert ShardLayout(HERE).options(1).device == "cpu"


@pytest.mark.parametrize("name", ["ranks", "group", "layers", "threads"])
def test_sizes_below_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ShardLayout(HERE, **{name: 0})  # type: ignore[arg-type]
