"""What a draft is worth: tokens over time of a step in which several sequences may draft.

Goodput (TurboSpec, arXiv 2406.14066), of a whole step and level by level of trees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.decoding.speculative.budget.chances import Chances
from weft.decoding.speculative.tree import DraftTree

Cost = Callable[[int], float]
"""What a pass over so many tokens takes, in passes over one."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A draft level by level: what each is expected to add in tokens, and how many nodes it has.

    `cost` is what making a level takes, in passes.
    """

    gains: tuple[float, ...] = ()
    nodes: tuple[int, ...] = ()
    cost: float = 0.0

    @classmethod
    def of(cls, tree: DraftTree, chances: Chances) -> Offer:
        """A tree that is there already, its levels as likely as `chances` say."""
        levels = np.bincount(tree.depths)[1 : chances.depths + 1]
        return cls(tuple(chances.reached(len(levels))), tuple(int(count) for count in levels))

    def best(self, rows: int, cost: Cost) -> tuple[float, int]:
        """Tokens over time when one of `rows` sequences drafts and the others do not: at the best
        depth, and which that is.
        """
        tokens, size = float(rows), rows
        found = (tokens / cost(size), 0)
        for depth, (gain, nodes) in enumerate(zip(self.gains, self.nodes, strict=True), 1):
            tokens += gain
            size += nodes
            found = max(found, (tokens / (cost(size) + self.cost * depth), depth))
        return found


NO_OFFER = Offer()


def share_out(offers: Sequence[Offer], cost: Cost, margin: float) -> list[int]:
    """How deep each of the sequences of a step drafts, so that most tokens come in the time.

    Levels are added in the order of what they gain for a node. What does not beat the step without
    drafts by the factor `margin` is left: times are measured, and chances estimated.
    """
    waiting = [(_density(offer, 0), row, 0) for row, offer in enumerate(offers) if offer.gains]
    heapq.heapify(waiting)
    tokens, size = float(len(offers)), len(offers)
    best, kept = margin * tokens / cost(size), 0
    taken: list[int] = []
    while waiting:
        _, row, level = heapq.heappop(waiting)
        offer = offers[row]
        tokens += offer.gains[level]
        size += offer.nodes[level]
        taken.append(row)
        if tokens / cost(size) > best:
            best, kept = tokens / cost(size), len(taken)
        if level + 1 < len(offer.gains):
            heapq.heappush(waiting, (_density(offer, level + 1), row, level + 1))
    return [taken[:kept].count(row) for row in range(len(offers))]


def _density(offer: Offer, level: int) -> float:
    """Less is better."""
    return -offer.gains[level] / offer.nodes[level]
