"""Trees, and ways down them, drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from weft.decoding.speculative.acceptance import AcceptedPath
from weft.decoding.speculative.draft import ROOT, DraftTree


@st.composite
def trees(draw: st.DrawFn, vocabulary: int, most: int = 9) -> DraftTree:
    """Of any shape: chains, bushes, and nothing at all."""
    tokens: list[int] = []
    parents: list[int] = []
    for node in range(draw(st.integers(0, most))):
        parent = draw(st.integers(ROOT, min(node, len(tokens)) - 1))
        token = draw(st.integers(0, vocabulary - 1))
        if (token, parent) not in zip(tokens, parents, strict=True):
            tokens.append(token)
            parents.append(parent)
    return DraftTree(tuple(tokens), tuple(parents))


@st.composite
def walked(draw: st.DrawFn, vocabulary: int, most: int = 9) -> tuple[DraftTree, AcceptedPath]:
    """A tree, and one of all walks that could come of it."""
    tree = draw(trees(vocabulary, most))
    last = draw(st.integers(ROOT, len(tree) - 1))
    return tree, AcceptedPath(tree.path(last), draw(st.integers(0, vocabulary - 1)))
