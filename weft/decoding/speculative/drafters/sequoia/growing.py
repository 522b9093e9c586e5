"""Trees of a draft model for several sequences: one pass a level, for all that are that deep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.branches import Branches
from weft.decoding.network.packing import Span
from weft.decoding.speculative.budget.sequoia import Shape
from weft.decoding.speculative.drafters.model.cache import DraftCache, Reader
from weft.decoding.speculative.drafters.model.line import Line
from weft.decoding.speculative.drafters.sequoia.children import Siblings
from weft.decoding.speculative.tree import ROOT, DraftTree, Proposal


class Growing:
    """The tree of one sequence on its way to `shape`, level by level.

    A node's children are chosen all at once. Where there are not enough, what the shape has below
    the others is left out.
    """

    def __init__(self, line: Line, siblings: Siblings, shape: Shape) -> None:
        self.line = line
        self._siblings = siblings
        self._shape = shape
        self._wanted: dict[int, list[int]] = {}
        """By node of the shape: its children there."""
        for node, parent in enumerate(shape.parents):
            self._wanted.setdefault(parent, []).append(node)
        self._place: dict[int, int] = {ROOT: ROOT}
        """Of a node of the shape: which node of the tree it is."""
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._proposals: dict[int, Proposal] = {}
        self._waiting: list[int] = [ROOT] if shape.parents else []
        """Nodes of the shape that were chosen and shall have children, in the tree's order."""

    @property
    def done(self) -> bool:
        """Whether no node is left that shall have children."""
        return not self._waiting

    @property
    def tree(self) -> DraftTree:
        """What was chosen so far."""
        return DraftTree(tuple(self._tokens), tuple(self._parents), self._proposals)

    def span(self) -> Span:
        """The nodes that shall have children, side by side behind the text."""
        root = len(self.line) - 1
        rows = [self._place[node] for node in self._waiting]
        tree = self.tree
        return Span(
            self.line.slot,
            [root + 1 + row for row in rows],
            [tree.tokens[row] for row in rows],
            len(rows),
            Branches(root, tree.depths, tree.ancestors),
        )

    def grow(self, logits: NDArray[np.float32]) -> None:
        """Logits [nodes that shall have children, vocabulary of the draft model], in their order.

        At first that is the root alone.
        """
        level, self._waiting = self._waiting, []
        for node, row in zip(level, logits, strict=True):
            self._give_children(node, row)

    def _give_children(self, node: int, logits: NDArray[np.float32]) -> None:
        wanted = self._wanted[node]
        place = self._place[node]
        position = len(self.line) + self._shape.depths[node - ROOT]
        tokens, law = self._siblings.choose(logits, len(wanted), position, place)
        if law is not None:
            self._proposals[place] = Proposal("without_replacement", law)
        for child, token in zip(wanted, tokens, strict=False):
            self._place[child] = len(self._tokens)
            self._tokens.append(token)
            self._parents.append(place)
            if child in self._wanted:
                self._waiting.append(child)


def grow(cache: DraftCache, network: Reader, growing: Sequence[Growing]) -> None:
    """Grow all trees to their end, in passes of `network`, which is that of `cache`."""
    first = [each for each in growing if not each.done]
    logits = cache.read([(each.line, ()) for each in first]) if first else []
    for each, row in zip(first, logits, strict=True):
        each.grow(row[None])
    while waiting := [each for each in growing if not each.done]:
        readings = network.forward([each.span() for each in waiting])
        cache.forwards += 1
        for each in waiting:
            each.grow(readings[each.line.slot].logits[:, : cache.vocabulary])
