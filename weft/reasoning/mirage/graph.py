"""A knowledge graph of triples: find an entity by its name, its neighbours, the way to another.

Held in networkx. Knows no model; answers come in the order in which triples were given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice, pairwise
from typing import Final

import networkx as nx

from weft.reasoning.mirage.triples import Triple

_WORD: Final = re.compile(r"\w+")
_LEAST_OVERLAP: Final = 0.5
_LEAST_LIKENESS: Final = 0.8
_MOST_FUZZY: Final = 5_000
"""Names that are compared letter by letter; in a larger graph only words count."""

_WAYS: Final = 3


class KnowledgeGraph:
    """The graph of `triples`. Names of the same words are one entity, in whatever case."""

    def __init__(self, triples: Sequence[Triple]) -> None:
        self._triples = tuple(triples)
        self._graph: nx.Graph[str] = nx.Graph()
        self._names: dict[str, str] = {}
        self._by_word: dict[str, list[str]] = {}
        for number, triple in enumerate(self._triples):
            one, other = self._entity(triple.subject), self._entity(triple.object)
            if not self._graph.has_edge(one, other):
                self._graph.add_edge(one, other, triples=[])
            self._graph[one][other]["triples"].append(number)

    def _entity(self, name: str) -> str:
        entity = _key(name)
        if entity not in self._names:
            self._names[entity] = name
            for word in entity.split():
                self._by_word.setdefault(word, []).append(entity)
        return entity

    def __len__(self) -> int:
        """How many triples there are."""
        return len(self._triples)

    def triple(self, number: int) -> Triple:
        """The triple `number`, from 0."""
        return self._triples[number]

    def find(self, name: str) -> str | None:
        """The entity's name as the graph spells it, that is most like `name`; None: none is."""
        wanted = _key(name)
        if wanted in self._names:
            return self._names[wanted]
        words = set(wanted.split())
        alike = dict.fromkeys(e for word in wanted.split() for e in self._by_word.get(word, ()))
        overlaps = {entity: _overlap(words, entity.split()) for entity in alike}
        best = max(overlaps, key=lambda entity: overlaps[entity], default=None)
        if best is not None and overlaps[best] >= _LEAST_OVERLAP:
            return self._names[best]
        if wanted and len(self._names) <= _MOST_FUZZY:
            close = get_close_matches(wanted, self._names, n=1, cutoff=_LEAST_LIKENESS)
            return self._names[close[0]] if close else None
        return None

    def named_in(self, text: str, most: int) -> tuple[str, ...]:
        """The entities whose whole names stand in `text`, the longest first, at most `most`."""
        said = f" {_key(text)} "
        found = [entity for entity in self._names if entity and f" {entity} " in said]
        return tuple(self._names[entity] for entity in sorted(found, key=len, reverse=True)[:most])

    def around(self, name: str, relation: str = "", most: int = 12) -> tuple[int, ...]:
        """The numbers of the triples about the entity `name`, which `find` gave.

        Those whose relation is most like `relation` come first; else in the order given.
        """
        wanted = set(_key(relation).split())
        entity = _key(name)
        if entity not in self._graph:
            return ()
        edges = self._graph[entity].values()
        numbers = sorted(number for edge in edges for number in edge["triples"])
        likeness = {n: _overlap(wanted, _key(self._triples[n].relation).split()) for n in numbers}
        return tuple(sorted(numbers, key=lambda number: -likeness[number])[:most])

    def between(self, one: str, other: str, *, hops: int, most: int = 12) -> tuple[int, ...]:
        """The numbers of the triples on the shortest ways of at most `hops` triples, way by way."""
        ends = (_key(one), _key(other))
        if ends[0] == ends[1] or not all(end in self._graph for end in ends):
            return ()
        try:
            ways = list(islice(nx.all_shortest_paths(self._graph, *ends), _WAYS))
        except nx.NetworkXNoPath:
            return ()
        if len(ways[0]) - 1 > hops:
            return ()
        steps = (step for way in ways for step in pairwise(way))
        numbers = (number for a, b in steps for number in self._graph[a][b]["triples"])
        return tuple(islice(dict.fromkeys(numbers), most))


def _key(name: str) -> str:
    return " ".join(_WORD.findall(name.casefold())) or " ".join(name.split())


def _overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """The share of the words of both that both have."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first and second else 0.0
