"""Layered layout of an acyclic graph with few crossings (Sugiyama, Tagawa and Toda).

An edge over several layers has a point in each layer that it passes.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

_SWEEPS = 12

Key = Hashable
Neighbours = dict[Key, list[Key]]


@dataclass(frozen=True, slots=True)
class EdgePoint:
    """The point where edge `edge` passes layer `layer`."""

    edge: int
    layer: int


@dataclass(frozen=True, slots=True)
class Layers:
    """`rows` from top to bottom, each from left to right: node names, and `EdgePoint`s.

    `chains`: for each edge its keys from source to target.
    """

    rows: tuple[tuple[Key, ...], ...]
    chains: tuple[tuple[Key, ...], ...]


def layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> Layers:
    """The layers of an acyclic graph; `names` in declared order break ties."""
    level = _levels(names, edges)
    chains = []
    rows: list[list[Key]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for name in names:
        rows[level[name]].append(name)
    for index, (source, target) in enumerate(edges):
        bends = [EdgePoint(index, layer) for layer in range(level[source] + 1, level[target])]
        for bend in bends:
            rows[bend.layer].append(bend)
        chains.append((source, *bends, target))
    return Layers(_untangled(rows, chains), tuple(chains))


def _levels(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The longest path from a source; nodes without inputs then move down to their targets."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edges)
    level = {
        name: layer
        for layer, generation in enumerate(nx.topological_generations(graph))
        for name in generation
    }
    for name in names:
        if not graph.in_degree(name) and graph.out_degree(name):
            level[name] = min(level[target] for target in graph.successors(name)) - 1
    return level


def neighbours(chains: Iterable[Sequence[Key]]) -> tuple[Neighbours, Neighbours]:
    """The keys directly above each key, and those below."""
    above: Neighbours = defaultdict(list)
    below: Neighbours = defaultdict(list)
    for chain in chains:
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    return above, below


def _untangled(
    rows: list[list[Key]], chains: Iterable[Sequence[Key]]
) -> tuple[tuple[Key, ...], ...]:
    """Order each row by the mean position of its neighbours, down and up; keep the best order."""
    above, below = neighbours(chains)
    best = [list(row) for row in rows]
    fewest = _crossings(best, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        near = above if downwards else below
        order = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
        for index in order:
            fixed = rows[index - 1 if downwards else index + 1]
            rows[index] = _by_mean(rows[index], fixed, near)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            fewest, best = crossings, [list(row) for row in rows]
    return tuple(map(tuple, best))


def _by_mean(row: list[Key], fixed: Sequence[Key], near: Neighbours) -> list[Key]:
    place = {key: index for index, key in enumerate(fixed)}

    def mean(entry: tuple[int, Key]) -> float:
        index, key = entry
        places = [place[other] for other in near[key]]
        return sum(places) / len(places) if places else index

    return [key for _, key in sorted(enumerate(row), key=mean)]


def _crossings(rows: Sequence[Sequence[Key]], below: Neighbours) -> int:
    """The number of edge crossings between neighbouring rows."""
    crossings = 0
    for upper, lower in pairwise(rows):
        place = {key: index for index, key in enumerate(lower)}
        passed: list[int] = []
        for key in upper:
            ends = sorted(place[other] for other in below[key])
            crossings += sum(len(passed) - bisect(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return crossings


_ROUNDS = 6
_BEND_WIDTH = 10.0
_BEND_WEIGHT = 4.0


def centres(layers: Layers, widths: Mapping[Key, float], gap: float) -> dict[Key, float]:
    """The x of each key's centre: each row moves towards its neighbours, and keeps its order."""
    above, below = neighbours(layers.chains)
    x: dict[Key, float] = {}

    def settle(row: Sequence[Key], *sides: Mapping[Key, list[Key]]) -> None:
        wanted = []
        for key in row:
            near = [x[other] for side in sides for other in side.get(key, ())]
            wanted.append(sum(near) / len(near) if near else x.get(key, 0.0))
        x.update(zip(row, _spread(wanted, _offsets(row, widths, gap), row), strict=True))

    for row in layers.rows:
        settle(row)
    for _ in range(_ROUNDS):
        for row in layers.rows:
            settle(row, above)
        for row in reversed(layers.rows):
            settle(row, below)
    for row in layers.rows:
        settle(row, above, below)
    return x


def _offsets(row: Sequence[Key], widths: Mapping[Key, float], gap: float) -> list[float]:
    """The centres of a row that is packed as tightly as possible."""
    offsets, at = [], 0.0
    for key in row:
        half = widths.get(key, _BEND_WIDTH) / 2
        offsets.append(at + half)
        at += 2 * half + gap
    return offsets


def _spread(wanted: Sequence[float], offsets: Sequence[float], row: Sequence[Key]) -> list[float]:
    """The positions nearest to `wanted` (least squares) that keep the packed distances.

    Isotonic regression by pooling neighbours that would overlap.
    """
    pools: list[tuple[float, float, int]] = []
    for want, offset, key in zip(wanted, offsets, row, strict=True):
        weight = _BEND_WEIGHT if isinstance(key, EdgePoint) else 1.0
        mean, members = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, other_weight, count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight, members = weight + other_weight, members + count
        pools.append((mean, weight, members))
    means = [mean for mean, _, members in pools for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
