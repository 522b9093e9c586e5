"""The likeliest trees when all positions are guessed at once, by heads or by learnt rows."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.draft import ROOT, DraftTree

Accuracy = Sequence[Sequence[float]]
"""[distances][ranks]: how often that guess is right."""


@dataclass(frozen=True, slots=True)
class RankTree:
    """The guesses of heads that form a draft, by the accuracy of each rank at each distance
    (Medusa, arXiv 2401.10774, section 2.3.3).

    Nodes by falling probability; `ranks[i]` is the guess of node i at its depth. `parents` are
    `ROOT` or earlier nodes, so every prefix is a tree, too, and the best of its size. `chances[i]`:
    the probability that the whole path to node i is right.
    """

    parents: tuple[int, ...]
    ranks: tuple[int, ...]
    depths: tuple[int, ...]
    chances: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.parents)

    def first(self, nodes: int) -> RankTree:
        """The best tree of so many nodes."""
        return RankTree(
            self.parents[:nodes], self.ranks[:nodes], self.depths[:nodes], self.chances[:nodes]
        )

    def filled(self, guesses: Sequence[Sequence[int]]) -> tuple[DraftTree, tuple[int, ...]]:
        """The draft with `guesses[d]` at depth d + 1 by rank, all different.

        Nodes without a guess are left out, with their descendants. Also returns, for each node of
        the draft, its node in this tree.
        """
        tokens: list[int] = []
        parents: list[int] = []
        place = {ROOT: ROOT}
        for node, (parent, rank, depth) in enumerate(
            zip(self.parents, self.ranks, self.depths, strict=True)
        ):
            there = parent in place and depth <= len(guesses) and rank < len(guesses[depth - 1])
            if there:
                place[node] = len(tokens)
                tokens.append(int(guesses[depth - 1][rank]))
                parents.append(place[parent])
        return DraftTree(tuple(tokens), tuple(parents)), tuple(place)[1:]


def best_ranks(accuracy: Accuracy, nodes: int, depth: int | None = None) -> RankTree:
    """The tree of `nodes` with the largest expected accepted length, at most `depth` deep.

    Fewer nodes where no others were ever right.
    """
    levels = [_by_chance(row) for row in accuracy[:depth]]
    tree: list[tuple[int, int, int, float]] = []  # parent, rank, depth, chance
    waiting: list[tuple[float, int, int, int, float]] = []  # -chance, depth, parent, which, above

    def offer(parent: int, level: int, which: int, above: float) -> None:
        """Queue the guess number `which` of its level by chance."""
        if level < len(levels) and which < len(levels[level]):
            chance = above * levels[level][which][0]
            if chance > 0.0:
                heapq.heappush(waiting, (-chance, level, parent, which, above))

    offer(ROOT, 0, 0, 1.0)
    while waiting and len(tree) < nodes:
        chance, level, parent, which, above = heapq.heappop(waiting)
        tree.append((parent, levels[level][which][1], level + 1, -chance))
        offer(len(tree) - 1, level + 1, 0, -chance)
        offer(parent, level, which + 1, above)
    if not tree:
        return RankTree((), (), (), ())
    parents, ranks, depths, chances = zip(*tree, strict=True)
    return RankTree(parents, ranks, depths, chances)


def _by_chance(row: Sequence[float]) -> list[tuple[float, int]]:
    """Chances with their ranks, the largest first."""
    return sorted(((min(chance, 1.0), rank) for rank, chance in enumerate(row)), key=_falling)


def _falling(pair: tuple[float, int]) -> tuple[float, int]:
    return -pair[0], pair[1]


def likeliest_tree(logits: NDArray[np.float32], most: int, width: int) -> DraftTree:
    """The tree of the likeliest paths. logits: [levels, vocabulary] of the first, second, .. token
    of the draft; of each level the `width` likeliest tokens count.
    """
    levels = [_best(row, width) for row in logits]
    tokens: list[int] = []
    parents: list[int] = []
    waiting: list[tuple[float, int, int, int]] = []  # -log probability, level, parent, token

    def offer(parent: int, level: int, above: float) -> None:
        if level < len(levels):
            for token, log in levels[level]:
                heapq.heappush(waiting, (above - log, level, parent, token))

    offer(ROOT, 0, 0.0)
    while waiting and len(tokens) < most:
        negative, level, parent, token = heapq.heappop(waiting)
        tokens.append(token)
        parents.append(parent)
        offer(len(tokens) - 1, level + 1, negative)
    return DraftTree(tuple(tokens), tuple(parents))


def _best(logits: NDArray[np.float32], width: int) -> Sequence[tuple[int, float]]:
    """The likeliest tokens with their log probabilities."""
    shifted = logits.astype(np.float64) - float(logits.max())
    logs = shifted - np.log(np.exp(shifted).sum())
    few = np.argsort(-logs, kind="stable")[:width]
    return [(int(token), float(logs[token])) for token in few]
