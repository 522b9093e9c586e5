"""The tree of a size that is expected to be accepted furthest (Sequoia, arXiv 2402.12374)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from weft.decoding.speculative.tree import ROOT


@dataclass(frozen=True, slots=True)
class Shape:
    """`parents` of the nodes, `ROOT` or an earlier one; children of a node follow their rank.

    `expected`: tokens a step, the target's own included.
    """

    parents: tuple[int, ...]
    expected: float

    @property
    def depth(self) -> int:
        """Drafting steps that it takes."""
        depths = [0]
        for parent in self.parents:
            depths.append(depths[parent + 1] + 1)
        return max(depths)


def best_shape(ranks: Sequence[float], nodes: int, depth: int) -> Shape:
    """The best tree of `nodes` drafted tokens, at most `depth` deep.

    `ranks[b]`: how likely the child of rank b is the one that is accepted. Fewer nodes where no
    more fit.
    """
    ranks = tuple(ranks)
    nodes = min(nodes, _room(len(ranks), depth, nodes))

    @cache
    def below(count: int, levels: int, rank: int) -> tuple[float, int]:
        """The best of `count` nodes as children from `rank` on, with all below them; how many of
        them the first child takes.
        """
        if not count:
            return 0.0, 0
        if not levels or rank == len(ranks):
            return float("-inf"), 0
        return max(
            (
                ranks[rank] * (1.0 + below(size - 1, levels - 1, 0)[0])
                + below(count - size, levels, rank + 1)[0],
                size,
            )
            for size in range(1, count + 1)
        )

    parents: list[int] = []

    def lay_out(parent: int, count: int, levels: int, rank: int) -> None:
        while count:
            size = below(count, levels, rank)[1]
            parents.append(parent)
            lay_out(len(parents) - 1, size - 1, levels - 1, 0)
            count, rank = count - size, rank + 1

    lay_out(ROOT, nodes, depth, 0)
    return Shape(tuple(parents), 1.0 + below(nodes, depth, 0)[0])


def fastest_shape(
    ranks: Sequence[float],
    nodes: int,
    depth: int,
    draft_s: float,
    target_s: Callable[[int], float],
) -> Shape:
    """The tree that takes the least time a token: `draft_s` a level, `target_s` of a pass over all.

    A tree without nodes is plain decoding.
    """
    shapes = {
        shape.parents: shape
        for levels in range(depth + 1)
        for count in range(nodes + 1)
        for shape in (best_shape(ranks, count, levels),)
    }
    return min(
        shapes.values(),
        key=lambda s: (s.depth * draft_s + target_s(1 + len(s.parents))) / s.expected,
    )


def _room(width: int, depth: int, enough: int) -> int:
    """How many nodes there can be, counted as far as `enough`."""
    total, level = 0, 1
    for _ in range(depth):
        level *= width
        total += level
        if total >= enough:
            return enough
    return total
