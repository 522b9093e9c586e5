"""A tree of drafted tokens that grows where the draft model is surest (LLMCad, arXiv 2309.04255).

Knows logits; knows no model.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.drafters.model.choice import Chosen
from weft.decoding.speculative.tree import ROOT, DraftTree

_LEAST: Final = 1e-9
"""Tokens less probable than that are never drafted."""


class Growth:
    """Nodes by the probability of their whole path, up to `most`.

    `seeds` are a chain that was drafted before. After each reading of the tree those `width` tokens
    are added, after whatever nodes, whose paths are likeliest, unless they are below `threshold`;
    one is added even then, when there is none yet. With a width of 1 and no seeds the tree is that
    of the likeliest paths of all; wider, it takes fewer readings.
    """

    def __init__(self, seeds: Sequence[Chosen], most: int, threshold: float, width: int) -> None:
        self._nodes: list[Chosen] = []
        self._parents: list[int] = []
        self._paths: list[float] = []
        self._unread = ROOT
        """The first node that was not read."""
        self._waiting: list[tuple[float, int, int, Chosen]] = []
        self._offers = 0
        self._most = most
        self._threshold = threshold
        self._width = width
        self._full = False
        for depth, seed in enumerate(seeds[:most]):
            self._add(1.0 if not depth else self._paths[-1], depth - 1, seed)

    @property
    def tree(self) -> DraftTree:
        """What has grown so far."""
        return DraftTree(tuple(node.token for node in self._nodes), tuple(self._parents))

    @property
    def grows(self) -> bool:
        """Whether the tree is to be read once more."""
        if self._full or len(self._nodes) >= self._most:
            return False
        if not self._nodes:
            return True
        return max(self._paths[max(self._unread, 0) :], default=0.0) >= self._threshold

    def feed(self, logits: NDArray[np.float32], stamp: int) -> None:
        """The tree was read: logits [1 + nodes, vocabulary] after the root and each node."""
        before = len(self._nodes)
        for node in range(self._unread, before):
            self._offer(node, logits[node - ROOT], stamp)
        self._unread = before
        while self._waiting and len(self._nodes) < min(self._most, before + self._width):
            negative, _, parent, chosen = self._waiting[0]
            if -negative < self._threshold and self._nodes:
                break
            heapq.heappop(self._waiting)
            self._add(1.0 if parent == ROOT else self._paths[parent], parent, chosen)
        self._full = len(self._nodes) == before

    @property
    def nodes(self) -> tuple[Chosen, ...]:
        """The nodes of the tree."""
        return tuple(self._nodes)

    @property
    def best(self) -> list[Chosen]:
        """The path on which every token is the likeliest after the one before it."""
        path: list[Chosen] = []
        node = ROOT
        children = self._children()
        while node in children:
            node = max(children[node], key=lambda child: (self._paths[child], -child))
            path.append(self._nodes[node])
        return path

    def _children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self._parents):
            children.setdefault(parent, []).append(node)
        return children

    def _add(self, above: float, parent: int, chosen: Chosen) -> None:
        self._nodes.append(chosen)
        self._parents.append(parent)
        self._paths.append(above * chosen.confidence)

    def _offer(self, node: int, logits: NDArray[np.float32], stamp: int) -> None:
        """Let the likeliest tokens after a node wait to be added; as many as may be, at most."""
        weights = np.exp(logits.astype(np.float64) - logits.max())
        weights /= weights.sum()
        above = 1.0 if node == ROOT else self._paths[node]
        for child in self._children().get(node, ()):
            weights[self._nodes[child].token] = 0.0
        room = min(self._most - len(self._nodes), len(weights))
        least = np.partition(weights, -room)[-room] if room > 0 else np.inf
        for token in np.flatnonzero(weights >= max(least, _LEAST)):
            chosen = Chosen(int(token), float(weights[token]), None, stamp)
            self._offers += 1
            heapq.heappush(self._waiting, (-above * chosen.confidence, self._offers, node, chosen))
