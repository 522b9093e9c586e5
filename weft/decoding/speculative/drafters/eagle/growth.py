"""A dynamic tree (EAGLE-2, arXiv 2406.16858): grown where it is likely, then cut to the best nodes.

Probabilities choose nodes only: acceptance takes them as chosen by a rule. Knows no model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.tree import ROOT, DraftTree


class Growth:
    """Grown level by level: of each level the `width` likeliest nodes get `width` children each."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._scores: list[float] = []
        self.frontier: list[int] = [ROOT]
        """The nodes that get children next."""

    def token(self, node: int) -> int:
        """Of one of the nodes grown so far."""
        return self._tokens[node]

    def parent(self, node: int) -> int:
        """The node that it follows, or `ROOT`."""
        return self._parents[node]

    def grow(self, tokens: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        """tokens, scores: [frontier, width or less], the children of its nodes and their log
        probabilities after them; those of one node all differ.
        """
        born: list[int] = []
        for parent, row, logs in zip(self.frontier, tokens, scores, strict=True):
            above = 0.0 if parent == ROOT else self._scores[parent]
            for token, score in zip(row, logs, strict=True):
                born.append(len(self._tokens))
                self._tokens.append(int(token))
                self._parents.append(parent)
                self._scores.append(above + float(score))
        self.frontier = sorted(self._best(born, self._width))

    def tree(self, most: int) -> DraftTree:
        """The `most` likeliest nodes. None is likelier than its parent, so paths are whole."""
        kept = sorted(self._best(range(len(self._tokens)), most))
        place = {ROOT: ROOT} | {node: at for at, node in enumerate(kept)}
        return DraftTree(
            tuple(self._tokens[node] for node in kept),
            tuple(place[self._parents[node]] for node in kept),
        )

    def _best(self, nodes: Sequence[int], most: int) -> list[int]:
        # of equals the earlier ones, so that parents come before their children
        return sorted(nodes, key=lambda node: (-self._scores[node], node))[:most]
