"""Sequoia's trees (arXiv 2402.12374): their optimal shape, and their growth by a draft model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.network.packing import Span
from weft.decoding.network.visibility import TreeMask
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.draft import ROOT, ChildDistribution, DraftTree
from weft.decoding.speculative.drafters.model.draft_cache import (
    DraftCache,
    DraftNetwork,
    DraftSequence,
)


@dataclass(frozen=True, slots=True)
class TreeShape:
    """A tree's shape: `parents` of the nodes, `ROOT` or an earlier one, children in order of rank.
    `expected`: tokens of a step, including the target's own.
    """

    parents: tuple[int, ...]
    expected: float

    @property
    def depths(self) -> list[int]:
        """[1 + nodes]: 0 for the root."""
        depths = [0]
        for parent in self.parents:
            depths.append(depths[parent + 1] + 1)
        return depths

    @property
    def depth(self) -> int:
        """Number of drafting steps."""
        return max(self.depths)


class TreeShapeSearch:
    """The optimal trees for one acceptance vector: `ranks[b]` is the probability that the child of
    rank b is the accepted one, whatever its parent. Partial results serve all sizes.
    """

    def __init__(self, ranks: Sequence[float]) -> None:
        self._ranks = tuple(ranks)
        self._solved: dict[tuple[int, int, int], tuple[float, int]] = {}

    def best(self, nodes: int, depth: int) -> TreeShape:
        """The best tree of `nodes`, or as many as fit, at most `depth` deep."""
        nodes = min(nodes, _room(len(self._ranks), depth, nodes))
        parents: list[int] = []
        self._lay_out(parents, ROOT, nodes, depth)
        return TreeShape(tuple(parents), 1.0 + self._below(nodes, depth, 0)[0])

    def fastest(
        self, nodes: int, depth: int, draft_s: float, target_s: Callable[[int], float]
    ) -> TreeShape:
        """The tree with the lowest time per token, of up to `nodes`, up to `depth` deep.

        `draft_s` is the time to draft a level, `target_s` that of a pass over so many tokens. A
        tree without nodes is plain decoding.
        """
        sizes = [(0, 0), *((n, d) for d in range(1, depth + 1) for n in range(d, nodes + 1))]
        tokens = {(n, d): 1.0 + self._below(n, d, 0)[0] for n, d in sizes}

        def seconds_a_token(size: tuple[int, int]) -> float:
            if tokens[size] < 1.0:  # they do not fit
                return float("inf")
            return (size[1] * draft_s + target_s(1 + size[0])) / tokens[size]

        return self.best(*min(sizes, key=seconds_a_token))

    def _below(self, count: int, levels: int, rank: int) -> tuple[float, int]:
        """The best value of `count` nodes from rank `rank` on, and the share of the first child."""
        if not count:
            return 0.0, 0
        if not levels or rank == len(self._ranks):
            return float("-inf"), 0
        solved = self._solved.get((count, levels, rank))
        if solved is None:
            solved = max(
                (
                    self._ranks[rank] * (1.0 + self._below(size - 1, levels - 1, 0)[0])
                    + self._below(count - size, levels, rank + 1)[0],
                    size,
                )
                for size in range(1, count + 1)
            )
            self._solved[count, levels, rank] = solved
        return solved

    def _lay_out(self, parents: list[int], parent: int, count: int, levels: int) -> None:
        rank = 0
        while count:
            size = self._below(count, levels, rank)[1]
            parents.append(parent)
            self._lay_out(parents, len(parents) - 1, size - 1, levels - 1)
            count, rank = count - size, rank + 1


def _room(width: int, depth: int, enough: int) -> int:
    """The number of possible nodes, counted up to `enough`."""
    total, level = 0, 1
    for _ in range(depth):
        level *= width
        total += level
        if total >= enough:
            return enough
    return total


_MEMORY: Final = 4096.0
_WEIGHT: Final = 8.0
"""The prior counts as so many visits."""


class AcceptanceByRank:
    """Acceptance of the children of visited nodes, by rank; `width` ranks are distinguished.

    A priori the first is accepted half of the time, and each later one a third as often as the one
    before.
    """

    def __init__(self, width: int) -> None:
        self.visits = 0
        self._there = [0.0] * width
        self._accepted = [0.0] * width

    @property
    def vector(self) -> tuple[float, ...]:
        """By rank: the probability that this child is the accepted one."""
        priors = (0.5 * 3.0**-rank for rank in range(len(self._there)))
        return tuple(
            (accepted + _WEIGHT * prior) / (there + _WEIGHT)
            for accepted, there, prior in zip(self._accepted, self._there, priors, strict=True)
        )

    def observe(self, tree: DraftTree, tokens: Sequence[int]) -> None:
        """Learn from a draft and the tokens that were committed: its path, and one more.

        The last token is never that of a rejected child, so the tokens determine the path.
        """
        node = ROOT
        for token in tokens:
            children = tree.children(node)
            ranks = [rank for rank, child in enumerate(children) if tree.tokens[child] == token]
            self._visit(len(children), ranks[0] if ranks else None)
            if not ranks:
                return
            node = children[ranks[0]]

    def as_json(self) -> dict[str, object]:
        """A JSON value for `restore`."""
        return {"there": self._there, "accepted": self._accepted}

    def restore(self, value: object) -> bool:
        """Load a value of `as_json` of the same width; false for other values."""
        if not isinstance(value, dict):
            return False
        there = _counts(value.get("there"), len(self._there))
        accepted = _counts(value.get("accepted"), len(self._there))
        if there is None or accepted is None:
            return False
        if any(a > t for a, t in zip(accepted, there, strict=True)):
            return False
        self._there, self._accepted = there, accepted
        return True

    def _visit(self, children: int, accepted: int | None) -> None:
        if not children:
            return
        self.visits += 1
        for rank in range(min(children, len(self._there))):
            decay = 1.0 - 1.0 / _MEMORY
            self._there[rank] = self._there[rank] * decay + 1.0
            self._accepted[rank] = self._accepted[rank] * decay + (rank == accepted)


def _counts(value: object, width: int) -> list[float] | None:
    if not isinstance(value, list) or len(value) != width:
        return None
    fine = all(type(each) in {int, float} and math.isfinite(each) and each >= 0 for each in value)
    return [float(each) for each in value] if fine else None


TokenDistribution = NDArray[np.float64]


class ChildChoice(Protocol):
    """Chooses the children of nodes for one sequence."""

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], TokenDistribution | None]:
        """Up to `count` different tokens in order, from logits [vocabulary of the draft model]; and
        the distribution [vocabulary of the target] of samples.
        """


class TopChildren:
    """Implements `ChildChoice`: the likeliest tokens, the lowest id of equals first."""

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], TokenDistribution | None]:
        del position, node
        if count >= len(logits):
            return np.argsort(-logits, kind="stable").tolist(), None
        border = np.partition(logits, len(logits) - count)[len(logits) - count]
        above = np.flatnonzero(logits > border)
        level = np.flatnonzero(logits == border)[: count - len(above)]
        top = np.concatenate([above[np.argsort(-logits[above], kind="stable")], level])
        return top.tolist(), None


class ChildrenWithoutReplacement:
    """Implements `ChildChoice`: samples without replacement, in order.

    As a race (Efraimidis and Spirakis, 2006): a token of weight w arrives after an exponential time
    of rate w, and the first `count` to arrive are the sample. Distributions have the target's size
    `vocabulary`. The random numbers derive from the request's `seed`, and differ from the target's.
    """

    def __init__(self, sampling: SamplingParams, seed: int, vocabulary: int) -> None:
        self._sampling = sampling
        self._key = blake2b(b"siblings %d" % seed, digest_size=8).digest()
        self._vocabulary = vocabulary

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], TokenDistribution | None]:
        distribution = np.zeros(self._vocabulary)
        distribution[: len(logits)] = self._sampling.distribution(logits)
        possible = np.flatnonzero(distribution)
        digest = blake2b(b"%d %d" % (position, node), digest_size=8, key=self._key).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        arrivals = rng.exponential(size=len(possible)) / distribution[possible]
        return possible[np.argsort(arrivals, kind="stable")[:count]].tolist(), distribution


class SequoiaTree:
    """The tree of one sequence, grown level by level to `shape`.

    A node's children are chosen together. Where there are too few, their descendants in the shape
    are left out.
    """

    def __init__(self, line: DraftSequence, siblings: ChildChoice, shape: TreeShape) -> None:
        self.line = line
        self._siblings = siblings
        self._shape = shape
        self._wanted: dict[int, list[int]] = {}
        """The children of each node of the shape."""
        for node, parent in enumerate(shape.parents):
            self._wanted.setdefault(parent, []).append(node)
        self._place: dict[int, int] = {ROOT: ROOT}
        """The node of the tree for each node of the shape."""
        self._tokens: list[int] = []
        self._parents: list[int] = []
        self._proposals: dict[int, ChildDistribution] = {}
        self._waiting: list[int] = [ROOT] if shape.parents else []
        """Chosen nodes of the shape that need children, in the tree's order."""

    @property
    def done(self) -> bool:
        """Whether no node needs children."""
        return not self._waiting

    @property
    def tree(self) -> DraftTree:
        """The tree so far."""
        return DraftTree(tuple(self._tokens), tuple(self._parents), self._proposals)

    def span(self) -> Span:
        """The nodes that need children, side by side after the text."""
        root = len(self.line) - 1
        rows = [self._place[node] for node in self._waiting]
        tree = self.tree
        return Span(
            self.line.slot,
            [root + 1 + row for row in rows],
            [tree.tokens[row] for row in rows],
            len(rows),
            TreeMask(root, tree.depths, tree.ancestors),
        )

    def grow(self, logits: NDArray[np.float32]) -> None:
        """Add children by logits [nodes that need them, vocabulary], at first of the root."""
        level, self._waiting = self._waiting, []
        for node, row in zip(level, logits, strict=True):
            self._give_children(node, row)

    def _give_children(self, node: int, logits: NDArray[np.float32]) -> None:
        wanted = self._wanted[node]
        place = self._place[node]
        position = len(self.line) + self._shape.depths[node - ROOT]
        tokens, distribution = self._siblings.choose(logits, len(wanted), position, place)
        if distribution is not None:
            self._proposals[place] = ChildDistribution("without_replacement", distribution)
        for child, token in zip(wanted, tokens, strict=False):
            self._place[child] = len(self._tokens)
            self._tokens.append(token)
            self._parents.append(place)
            if child in self._wanted:
                self._waiting.append(child)


def grow_trees(cache: DraftCache, network: DraftNetwork, growing: Sequence[SequoiaTree]) -> None:
    """Grow all trees to their shapes, in passes of `network`, which is that of `cache`."""
    first = [each for each in growing if not each.done]
    logits = cache.read([(each.line, ()) for each in first]) if first else []
    for each, row in zip(first, logits, strict=True):
        each.grow(row[None])
    while waiting := [each for each in growing if not each.done]:
        readings = network.forward([each.span() for each in waiting])
        cache.forwards += 1
        for each in waiting:
            each.grow(readings[each.line.slot].logits[:, : cache.vocabulary])
