"""What a grammar forbids is read in no pass, and nothing else of a draft is lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.draft import (
    ROOT,
    AuxiliaryRows,
    ChildDistribution,
    DraftProposal,
    DraftTree,
)
from weft.serving.local.autoregressive.row import admitted


def rising(tokens: Sequence[int]) -> int:
    """A grammar of numbers that rise from 0."""
    last = 0
    for count, token in enumerate(tokens):
        if token <= last:
            return count
        last = token
    return len(tokens)


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    tokens: list[int] = []
    parents: list[int] = []
    for node in range(draw(st.integers(0, 10))):
        parent = draw(st.integers(ROOT, node - 1))
        taken = {t for t, p in zip(tokens, parents, strict=True) if p == parent}
        token = draw(st.sampled_from(sorted(set(range(12)) - taken)))
        tokens.append(token)
        parents.append(parent)
    return DraftTree(tuple(tokens), tuple(parents))


def paths(tree: DraftTree) -> set[tuple[int, ...]]:
    return {tuple(tree.tokens[at] for at in tree.path(node)) for node in range(len(tree))}


@given(trees())
def test_the_paths_that_stay_are_those_that_can_follow(tree: DraftTree) -> None:
    left = admitted(DraftProposal(tree, source="s"), rising)
    assert paths(left.tree) == {path for path in paths(tree) if rising(path) == len(path)}
    assert left.source == "s"


def test_candidates_that_were_drawn_at_random_stay() -> None:
    law = np.full(5, 0.2)
    tree = DraftTree((3, 1), (ROOT, ROOT), {ROOT: ChildDistribution("without_replacement", law)})
    assert admitted(DraftProposal(tree), lambda _: 0).tree is tree


def test_a_draft_with_rows_beside_it_stays() -> None:
    aux = AuxiliaryRows((1,), (ROOT,), (1,), np.ones((1, 1), np.bool_))
    draft = DraftProposal(DraftTree.chain([3, 1]), aux)
    assert admitted(draft, lambda _: 0) is draft
