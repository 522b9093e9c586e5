"""The ratio test for drafts that were drawn at random (arXiv 2211.17192, 2302.01318).

Several siblings are tested in the order of their drawing, each against what the earlier ones left
of the target's law: SpecInfer's multi-step test for independent draws (arXiv 2305.09781), Sequoia's
for draws without replacement (arXiv 2402.12374).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import ROOT, DraftTree
from weft.decoding.speculative.walk import LawAt, Walk

Array = NDArray[np.float64]


class Ratio:
    """Implements `Acceptor`. Children that nobody drew are tested as certain: with their law."""

    def walk(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            here = position + len(path)
            taken, left, count = _test(tree, node, law_at(node), chance, here)
            tried += count
            if taken is None:
                return Walk(tuple(path), chance.token(left, here), tried)
            path.append(taken)
            node = taken


def _test(
    tree: DraftTree, node: int, law: Array, chance: Chance, position: int
) -> tuple[int | None, Array, int]:
    """The accepted child of `node`, or None and what is left of `law`; how many were tested."""
    proposal = tree.proposals.get(node)
    drawn = None if proposal is None else proposal.law
    for sibling, child in enumerate(tree.children(node)):
        token = tree.tokens[child]
        certain = drawn is None or not drawn[token] > 0.0  # nobody can have drawn it from there
        q = 1.0 if certain or drawn is None else float(drawn[token])
        if chance.accepts(min(1.0, float(law[token]) / q), position, sibling):
            return child, law, sibling + 1
        if certain or drawn is None:
            law = _without(law, token)
        else:
            law = _positive(law - drawn, law)
            if proposal is not None and proposal.kind == "without_replacement":
                drawn = _without(drawn, token)
    return None, law, len(tree.children(node))


def _without(law: Array, token: int) -> Array:
    rest = law.copy()
    rest[token] = 0.0
    return _positive(rest, law)


def _positive(rest: Array, law: Array) -> Array:
    """`rest` without what is negative, as a law. Nothing left: rounding rejected the certain."""
    rest = np.maximum(rest, 0.0)
    total = rest.sum()
    return rest / total if total > 0.0 else law
