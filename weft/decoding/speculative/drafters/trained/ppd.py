"""Parallel prompt decoding (PPD, arXiv 2405.18628): trained prompt tokens below every candidate.

In dynamic sparse trees candidates and prompt tokens share one budget. The number of prompt tokens
below the last accepted node bounds the depth of the next tree: it is the state, and each state has
a tree.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from weft.decoding.network.network import Network
from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    SpeculativeMethod,
)
from weft.decoding.speculative.drafters.trained.guess_tree import Accuracy, RankTree, best_ranks
from weft.decoding.speculative.drafters.trained.rows import (
    EmbeddingRowDrafter,
)
from weft.decoding.speculative.pass_costs import costs_of, pays_most
from weft.decoding.speculative.presets import Options, Preset, switch, text, whole
from weft.decoding.speculative.trained_drafter import find


@dataclass(frozen=True, slots=True)
class PromptTree:
    """A tree, and the number of prompt tokens below the root and each node: `rows` [1 + nodes]."""

    tree: RankTree
    rows: tuple[int, ...]

    @property
    def expected(self) -> float:
        """Tokens of a step, including the target's own."""
        return 1.0 + sum(self.tree.chances)

    @property
    def ends(self) -> NDArray[np.float64]:
        """[1 + nodes]: the probability that the root, or a node, is the last accepted one."""
        mass: NDArray[np.float64] = np.array([1.0, *self.tree.chances])
        for parent, chance in zip(self.tree.parents, self.tree.chances, strict=True):
            mass[parent - ROOT] -= chance
        return mass.clip(min=0.0)


@dataclass(frozen=True, slots=True)
class PromptTrees:
    """`states[s]` is the tree after a step with s prompt tokens at its last token.

    `expected`: tokens of a step in the long run.
    """

    states: tuple[PromptTree, ...]
    expected: float


def best_trees(accuracy: Accuracy, budget: int) -> PromptTrees:
    """Trees of at most `budget` rows, candidates and prompt tokens together, without the root.

    `accuracy[j]` is that of prompt token j, by rank. The share of candidates is searched, state by
    state, until no change of one improves the long run.
    """
    prompts = len(accuracy)

    @cache
    def candidates(state: int, nodes: int) -> RankTree:
        return best_ranks(accuracy, nodes, state)

    def laid_out(nodes: Sequence[int]) -> PromptTrees:
        trees = [candidates(state, count) for state, count in enumerate(nodes)]
        tokens = [1.0 + sum(tree.chances) for tree in trees]
        states = tuple(_with_rows(tree, prompts, budget, tokens) for tree in trees)
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


def _with_rows(tree: RankTree, prompts: int, budget: int, tokens: Sequence[float]) -> PromptTree:
    """The tree with prompt tokens at all nodes, less those that gain least, within the budget."""
    full = PromptTree(tree, (prompts,) * (1 + len(tree)))
    rows, ends = list(full.rows), full.ends

    def gain(node: int) -> float:
        return float(ends[node]) * (tokens[rows[node]] - tokens[rows[node] - 1])

    waiting = [(gain(node), node) for node in range(len(rows))] if prompts else []
    heapq.heapify(waiting)
    while waiting and len(tree) + sum(rows) > budget:
        _, node = heapq.heappop(waiting)
        rows[node] -= 1
        if rows[node]:
            heapq.heappush(waiting, (gain(node), node))
    return PromptTree(tree, tuple(rows))


def _in_the_long_run(states: Sequence[PromptTree]) -> float:
    """Tokens of a step, of the Markov chain of states that begins at 0."""
    moves = np.zeros((len(states), len(states)))
    for state, laid in enumerate(states):
        np.add.at(moves[state], list(laid.rows), laid.ends)
    lazy = 0.5 * (moves + np.eye(len(states)))  # the same stationary weights, without cycles
    weights = np.linalg.matrix_power(lazy, 1 << 12)[0]
    return float(weights @ [laid.expected for laid in states])


class PromptTokenDrafter(EmbeddingRowDrafter):
    """Implements `TargetObserver`: the likeliest tokens of prompt tokens fill the tree of the step,
    whose candidates have prompt tokens below them.

    `prompts` [distances, width] are the embeddings of prompt tokens.
    """

    def __init__(self, prompts: torch.Tensor, trees: PromptTrees) -> None:
        super().__init__("ppd", prompts)
        self._trees = trees
        self._ranks = 1 + max((max(s.tree.ranks, default=0) for s in trees.states), default=0)

    def draft(
        self, logits: NDArray[np.float32], forced: int, most: int
    ) -> tuple[DraftTree, Sequence[int]]:
        rows = torch.from_numpy(logits[forced:])
        guesses = rows.topk(min(self._ranks, rows.shape[-1]), dim=-1).indices.tolist()
        laid = self._trees.states[len(guesses)]
        tree, which = laid.tree.first(most).filled(guesses)
        return tree, [laid.rows[0], *(laid.rows[1 + node] for node in which)]


KIND = "ppd"
MOST_PROMPTS = 8
_MOST_ROWS = 128
_SIZES = (3, 4, 6, 8, 12, 16, 24, 32, 48)
_CONTEXT = 256
"""The text length for which the size is chosen."""
_FEW, _MANY = 16, 60
"""The most rows on a CPU, and on an accelerator, as PPD has them for a 13B model."""


def _make(network: Network, options: Options) -> SpeculativeMethod:
    like = network.embed([0])
    usual = _FEW if like.device.type == "cpu" else _MANY
    budget = whole(options, "rows", usual, 1, _MOST_ROWS)
    measured = switch(options, "measured", default="rows" not in options)
    artefact = find(KIND, network, text(options, "model"))
    count = artefact.whole("prompts", 1, MOST_PROMPTS)
    prompts = artefact.tensor("prompts", (count, network.width)).to(like.device, like.dtype)
    accuracy = artefact.table("accuracy", count)
    if measured:
        sizes = {rows for rows in _SIZES if rows < budget} | {budget}
        expected = {rows: best_trees(accuracy, rows).expected for rows in sizes}
        budget = pays_most(expected, costs_of(network).curve(_CONTEXT))
    trees = best_trees(accuracy, budget)
    largest = max(len(state.tree) for state in trees.states)
    most = whole(options, "num_speculative_tokens", max(largest, 1), 1, _MOST_ROWS)
    return PerSequenceMethod("ppd", lambda: PromptTokenDrafter(prompts, trees), most)


PRESETS = (
    Preset(
        "ppd",
        "trained prompt tokens below every candidate say the next candidates, in trees of a budget",
        _make,
        needs="prompt tokens trained for the model",
        options=("num_speculative_tokens", "rows", "model", "measured"),
    ),
)
