"""The tree of a size that is expected to be accepted furthest (Sequoia, arXiv 2402.12374)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.decoding.speculative.tree import ROOT


@dataclass(frozen=True, slots=True)
class Shape:
    """`parents` of the nodes, `ROOT` or an earlier one; children of a node follow their rank.

    `expected`: tokens a step, the target's own included.
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
        """Drafting steps that it takes."""
        return max(self.depths)


class Shapes:
    """The best trees for one acceptance vector: `ranks[b]` is how likely the child of rank b is the
    one that is accepted, wherever its parent stands. What is found for one size serves the others.
    """

    def __init__(self, ranks: Sequence[float]) -> None:
        self._ranks = tuple(ranks)
        self._known: dict[tuple[int, int, int], tuple[float, int]] = {}

    def best(self, nodes: int, depth: int) -> Shape:
        """Of `nodes` drafted tokens, at most `depth` deep. Fewer nodes where no more fit."""
        nodes = min(nodes, _room(len(self._ranks), depth, nodes))
        parents: list[int] = []
        self._lay_out(parents, ROOT, nodes, depth)
        return Shape(tuple(parents), 1.0 + self._below(nodes, depth, 0)[0])

    def fastest(
        self, nodes: int, depth: int, draft_s: float, target_s: Callable[[int], float]
    ) -> Shape:
        """The tree that takes the least time a token, of up to `nodes`, and up to `depth` deep.

        `draft_s` is what a level takes to draft, `target_s` what a pass over so many tokens does. A
        tree without nodes is plain decoding.
        """
        sizes = [(0, 0), *((n, d) for d in range(1, depth + 1) for n in range(d, nodes + 1))]
        tokens = {(n, d): 1.0 + self._below(n, d, 0)[0] for n, d in sizes}

        def seconds_a_token(size: tuple[int, int]) -> float:
            if tokens[size] < 1.0:  # so many do not fit
                return float("inf")
            return (size[1] * draft_s + target_s(1 + size[0])) / tokens[size]

        return self.best(*min(sizes, key=seconds_a_token))

    def _below(self, count: int, levels: int, rank: int) -> tuple[float, int]:
        """The best of `count` nodes as children from `rank` on, with all below them; how many of
        them the first child takes.
        """
        if not count:
            return 0.0, 0
        if not levels or rank == len(self._ranks):
            return float("-inf"), 0
        found = self._known.get((count, levels, rank))
        if found is None:
            found = max(
                (
                    self._ranks[rank] * (1.0 + self._below(size - 1, levels - 1, 0)[0])
                    + self._below(count - size, levels, rank + 1)[0],
                    size,
                )
                for size in range(1, count + 1)
            )
            self._known[count, levels, rank] = found
        return found

    def _lay_out(self, parents: list[int], parent: int, count: int, levels: int) -> None:
        rank = 0
        while count:
            size = self._below(count, levels, rank)[1]
            parents.append(parent)
            self._lay_out(parents, len(parents) - 1, size - 1, levels - 1)
            count, rank = count - size, rank + 1


def _room(width: int, depth: int, enough: int) -> int:
    """How many nodes there can be, counted as far as `enough`."""
    total, level = 0, 1
    for _ in range(depth):
        level *= width
        total += level
        if total >= enough:
            return enough
    return total
