"""Lexical Unit Decoding's rule (arXiv 2405.15208): what was drafted is kept, unverified.

Its drafter drafts only what it is sure of. The text changes: a rule that has to be asked for.
"""

from __future__ import annotations

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import ROOT, DraftTree
from weft.decoding.speculative.walk import LawAt, Walk


class Confidence:
    """Implements `LossyAcceptor` for chains; of siblings the first is taken."""

    def walk_lossy(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        path: list[int] = []
        node = ROOT
        while True:
            law = law_at(node)  # asked at every node on the way: the host follows along
            children = tree.children(node)
            if not children:
                return Walk(tuple(path), chance.token(law, position + len(path)), len(path))
            node = children[0]
            path.append(node)
