"""PPD's dynamic sparse trees (arXiv 2405.18628): candidates and prompt tokens share one budget.

Prompt tokens below the node that turns out to be the last accepted one decide how deep the next
tree can be: that number is the state, and each state has a tree. Knows ranks, no tokens.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.heads.rank_tree import Accuracy, RankTree, best_ranks
from weft.decoding.speculative.tree import ROOT


@dataclass(frozen=True, slots=True)
class PromptTree:
    """A tree, and how many prompt tokens hang below the root and each node: `rows` [1 + nodes]."""

    tree: RankTree
    rows: tuple[int, ...]

    @property
    def expected(self) -> float:
        """Tokens a step, the target's own included."""
        return 1.0 + sum(self.tree.chances)

    @property
    def ends(self) -> NDArray[np.float64]:
        """[1 + nodes]: how likely the root, or a node, is the last that is accepted."""
        mass: NDArray[np.float64] = np.array([1.0, *self.tree.chances])
        for parent, chance in zip(self.tree.parents, self.tree.chances, strict=True):
            mass[parent - ROOT] -= chance
        return mass.clip(min=0.0)


@dataclass(frozen=True, slots=True)
class PromptTrees:
    """`states[s]` is the tree of the step after one with s prompt tokens at its last token.

    `expected`: tokens a step in the long run.
    """

    states: tuple[PromptTree, ...]
    expected: float


def best_trees(accuracy: Accuracy, budget: int) -> PromptTrees:
    """Trees of at most `budget` rows, candidates and prompt tokens together, beside the root.

    `accuracy[j]` is that of prompt token j, by rank. How many of the rows are candidates is
    searched, state by state, until no change of one is better in the long run.
    """
    prompts = len(accuracy)

    @cache
    def candidates(state: int, nodes: int) -> RankTree:
        return best_ranks(accuracy, nodes, state)

    def laid_out(nodes: Sequence[int]) -> PromptTrees:
        trees = [candidates(state, count) for state, count in enumerate(nodes)]
        worth = [1.0 + sum(tree.chances) for tree in trees]
        states = tuple(_with_rows(tree, prompts, budget, worth) for tree in trees)
        return PromptTrees(states, _in_the_long_run(states))

    common = [[0] + [count] * prompts for count in range(budget + 1)]
    best = max(common, key=lambda nodes: laid_out(nodes).expected)
    value, better = laid_out(best).expected, True
    while better:
        better = False
        for state in range(1, prompts + 1):
            for count in range(budget + 1):
                nodes = [*best[:state], count, *best[state + 1 :]]
                other = laid_out(nodes).expected
                if other > value + 1e-9:
                    best, value, better = nodes, other, True
    return laid_out(best)


def _with_rows(tree: RankTree, prompts: int, budget: int, worth: Sequence[float]) -> PromptTree:
    """All prompt tokens everywhere, of which those go first that are missed least."""
    full = PromptTree(tree, (prompts,) * (1 + len(tree)))
    rows, ends = list(full.rows), full.ends

    def missed(node: int) -> float:
        return float(ends[node]) * (worth[rows[node]] - worth[rows[node] - 1])

    waiting = [(missed(node), node) for node in range(len(rows))] if prompts else []
    heapq.heapify(waiting)
    while waiting and len(tree) + sum(rows) > budget:
        _, node = heapq.heappop(waiting)
        rows[node] -= 1
        if rows[node]:
            heapq.heappush(waiting, (missed(node), node))
    return PromptTree(tree, tuple(rows))


def _in_the_long_run(states: Sequence[PromptTree]) -> float:
    """Tokens a step, where the states follow each other as a Markov chain that begins at 0."""
    moves = np.zeros((len(states), len(states)))
    for state, laid in enumerate(states):
        np.add.at(moves[state], list(laid.rows), laid.ends)
    lazy = 0.5 * (moves + np.eye(len(states)))  # the same weights in the end, and no cycles
    weights = np.linalg.matrix_power(lazy, 1 << 12)[0]
    return float(weights @ [laid.expected for laid in states])
