"""A draft without what a grammar forbids: a pass need not read what cannot be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.tree import ROOT, DraftTree


def admitted(draft: Draft, following: Callable[[Sequence[int]], int]) -> Draft:
    """`draft` as far as its tokens can follow; `following` tells how many of a run of them can.

    Left as it is where candidates were drawn at random, whose rule counts on all of them, and where
    rows hang beside the tree.
    """
    tree = draft.tree
    if not len(tree) or tree.proposals or len(draft.aux):
        return draft
    kept: set[int] = set()
    for leaf in set(range(len(tree))) - set(tree.parents):
        path = tree.path(leaf)
        kept.update(path[: following([tree.tokens[node] for node in path])])
    if len(kept) == len(tree):
        return draft
    place = {ROOT: ROOT} | {node: at for at, node in enumerate(sorted(kept))}
    left = DraftTree(
        tuple(tree.tokens[node] for node in sorted(kept)),
        tuple(place[tree.parents[node]] for node in sorted(kept)),
    )
    return Draft(left, source=draft.source)
