"""Sample and match: the target draws its token as ever, and a draft that has it is followed.

For drafts that draw nothing the same as the ratio test (arXiv 2211.17192) with a law of one token,
and token for token what is written without a draft.
"""

from __future__ import annotations

from weft.decoding.speculative.chance import Chance
from weft.decoding.speculative.tree import ROOT, DraftTree
from weft.decoding.speculative.walk import LawAt, Walk


class Match:
    """Implements `Acceptor`. With a greedy law this is the greedy rule."""

    def walk(self, tree: DraftTree, law_at: LawAt, chance: Chance, position: int) -> Walk:
        path: list[int] = []
        node, tried = ROOT, 0
        while True:
            token = chance.token(law_at(node), position + len(path))
            children = tree.children(node)
            found = next((child for child in children if tree.tokens[child] == token), None)
            if found is None:
                return Walk(tuple(path), token, tried + len(children))
            tried += children.index(found) + 1
            path.append(found)
            node = found
