"""WorFBench's graph F1, with one substitute: how alike two subtasks are is told by their words.

The published script (arXiv 2410.07869) matches nodes by the cosine of sentence embeddings of
all-mpnet-base-v2, which is not at hand; so figures made here are named otherwise and cannot be
compared with published ones. It also looks for a predicted edge among the gold edges without
mapping its nodes first; here they are mapped.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import networkx as nx

LEAST_LIKENESS: Final = 0.6
"""Above this two subtasks may be the same: the published threshold."""

_WORD: Final = re.compile(r"\w+|[^\w\s]")
_START, _END = -1, -2


@dataclass(frozen=True, slots=True)
class Subtasks:
    """`edges` are pairs of places in `nodes`. START and END are understood, not written."""

    nodes: Sequence[str]
    edges: Collection[tuple[int, int]]

    def framed(self) -> set[tuple[int, int]]:
        """The edges with START before what nothing precedes, and END after what nothing follows."""
        sources = {one for one, _ in self.edges}
        targets = {other for _, other in self.edges}
        places = range(len(self.nodes))
        starts = {(_START, place) for place in places if place not in targets}
        ends = {(place, _END) for place in places if place not in sources}
        return {*self.edges, *starts, *ends}


def likeness(one: str, other: str) -> float:
    """The cosine of the two texts' word counts, from 0 to 1."""
    mine, theirs = (Counter(_WORD.findall(text.lower())) for text in (one, other))
    product = sum(count * theirs[word] for word, count in mine.items())
    return product / math.sqrt(_square(mine) * _square(theirs)) if product else 0.0


def graph_f1(found: Subtasks, gold: Subtasks) -> float:
    """The F1 of the largest connected part that both graphs have, START and END included."""
    same = _matched(found.nodes, gold.nodes)
    pairs = {_START: _START, _END: _END, **same}
    wanted = gold.framed()
    common = [
        (pairs[one], pairs[other])
        for one, other in found.framed()
        if one in pairs and other in pairs and (pairs[one], pairs[other]) in wanted
    ]
    shared: nx.Graph[int] = nx.Graph()
    shared.add_nodes_from(pairs.values())
    shared.add_edges_from(common)
    largest = max(map(len, nx.connected_components(shared)))
    if largest == 1:
        return 0.0  # START alone is no plan
    return 2 * largest / (len(found.nodes) + len(gold.nodes) + 4)


def _matched(found: Sequence[str], gold: Sequence[str]) -> Mapping[int, int]:
    """Places in `found` and what they are in `gold`: pairs with the most likeness in all."""
    alike: nx.Graph[tuple[str, int]] = nx.Graph()
    for place, one in enumerate(found):
        for other, text in enumerate(gold):
            weight = likeness(one, text)
            if weight > LEAST_LIKENESS:
                alike.add_edge(("found", place), ("gold", other), weight=weight)
    return {
        min(pair)[1]: max(pair)[1]  # "found" sorts before "gold"
        for pair in nx.max_weight_matching(alike)
    }


def _square(counts: Counter[str]) -> int:
    return sum(count * count for count in counts.values())
