from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.draft import ROOT
from weft.decoding.speculative.drafters.trained.guess_tree import best_ranks

CHANCES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4)
ACCURACY = st.lists(CHANCES, min_size=1, max_size=3)


def paths(accuracy: list[list[float]]) -> list[float]:
    """The chances of all paths of ranks, likeliest first."""
    found = [
        math.prod(accuracy[level][rank] for level, rank in enumerate(path))
        for depth in range(1, len(accuracy) + 1)
        for path in itertools.product(*(range(len(row)) for row in accuracy[:depth]))
    ]
    return sorted((chance for chance in found if chance > 0.0), reverse=True)


@given(accuracy=ACCURACY, nodes=st.integers(0, 12))
def test_no_tree_of_that_size_is_better(accuracy: list[list[float]], nodes: int) -> None:
    tree = best_ranks(accuracy, nodes)
    assert tree.chances == pytest.approx(paths(accuracy)[:nodes])
    assert list(tree.chances) == sorted(tree.chances, reverse=True)
    for node, (parent, rank, depth, chance) in enumerate(
        zip(tree.parents, tree.ranks, tree.depths, tree.chances, strict=True)
    ):
        assert ROOT <= parent < node
        above = 1.0 if parent == ROOT else tree.chances[parent]
        assert depth == (1 if parent == ROOT else tree.depths[parent] + 1)
        assert chance == pytest.approx(above * accuracy[depth - 1][rank])
    siblings = list(zip(tree.parents, tree.ranks, strict=True))
    assert len(set(siblings)) == len(siblings)


@given(accuracy=ACCURACY, nodes=st.integers(0, 12), few=st.integers(0, 12))
def test_the_first_nodes_are_the_best_of_fewer(
    accuracy: list[list[float]], nodes: int, few: int
) -> None:
    assert best_ranks(accuracy, nodes).first(few) == best_ranks(accuracy, min(nodes, few))


def test_no_deeper_than_asked() -> None:
    accuracy = [[0.9, 0.1]] * 3
    assert max(best_ranks(accuracy, 20, 2).depths) == 2
    assert len(best_ranks(accuracy, 20, 0)) == 0
    assert len(best_ranks([[0.0, 0.0]], 20)) == 0


def test_filled_with_tokens() -> None:
    tree = best_ranks([[0.6, 0.3], [0.5, 0.1]], 5)
    assert tree.parents == (-1, -1, 0, 1, 0)
    draft, which = tree.filled([[7, 8], [9, 4]])
    assert (draft.tokens, draft.parents) == ((7, 8, 9, 9, 4), (-1, -1, 0, 1, 0))
    assert which == (0, 1, 2, 3, 4)
    # one level only, and one guess only: what hangs below what is missing goes with it
    assert tree.filled([[7, 8]])[0].tokens == (7, 8)
    draft, which = tree.filled([[7], [9, 4]])
    assert (draft.tokens, draft.parents, which) == ((7, 9, 4), (-1, 0, 0), (0, 2, 4))
    assert not len(tree.filled([])[0])
