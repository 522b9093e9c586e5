"""Draft trees: what they refuse, who sees whom, and what is left of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.draft import ROOT, ChildDistribution, DraftTree

LAW = np.full(8, 0.125)


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    size = draw(st.integers(0, 12))
    parents = tuple(draw(st.integers(ROOT, node - 1)) for node in range(size))
    return DraftTree(tuple(range(size)), parents)


@given(trees())
def test_a_node_sees_itself_and_those_above_it(tree: DraftTree) -> None:
    seen, depths = tree.ancestors, tree.depths
    assert seen[0].tolist() == [True] + [False] * len(tree)
    for node in range(len(tree)):
        path = tree.path(node)
        assert path[-1] == node
        assert depths[node + 1] == len(path)
        assert set(np.flatnonzero(seen[node + 1]) - 1) == {ROOT, *path}
        assert node in tree.children(tree.parents[node])


@given(trees(), st.integers(0, 6), st.none() | st.integers(0, 12))
def test_a_clipped_tree_holds_whole_paths_of_the_tree(
    tree: DraftTree, depth: int, nodes: int | None
) -> None:
    clipped = tree.clipped(depth, nodes)
    assert max(clipped.depths) <= depth
    assert nodes is None or len(clipped) <= nodes
    whole = {tuple(tree.tokens[i] for i in tree.path(node)) for node in range(len(tree))}
    assert {
        tuple(clipped.tokens[i] for i in clipped.path(node)) for node in range(len(clipped))
    } <= whole
    if nodes is None:
        assert len(clipped) == int((tree.depths[1:] <= depth).sum())


def test_a_clipped_tree_keeps_the_laws_of_what_is_left() -> None:
    tree = DraftTree.chain([3, 4, 5], [LAW, LAW, LAW])
    assert set(tree.clipped(2).proposals) == {ROOT, 0, 1}
    assert tree.clipped(0) == DraftTree(proposals=tree.clipped(0).proposals)


@pytest.mark.parametrize(
    ("tokens", "parents", "why"),
    [
        ((1, 2), (ROOT,), "2 tokens with 1 parents"),
        ((1,), (0,), "before its parent"),
        ((1,), (-2,), "before its parent"),
        ((-1,), (ROOT,), "no token"),
        ((4, 4), (ROOT, ROOT), "repeats a sibling"),
    ],
)
def test_what_is_no_tree_is_refused(
    tokens: tuple[int, ...], parents: tuple[int, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        DraftTree(tokens, parents)


def test_only_independent_draws_may_repeat_a_sibling() -> None:
    DraftTree((4, 4), (ROOT, ROOT), {ROOT: ChildDistribution("independent", LAW)})
    with pytest.raises(ValueError, match="repeats a sibling"):
        DraftTree((4, 4), (ROOT, ROOT), {ROOT: ChildDistribution("without_replacement", LAW)})
