"""Ranks the tools and fields of a catalogue by the words of a request. Knows no limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log1p
from typing import Final

from weft.agents.catalogue.bm25 import Bm25
from weft.agents.catalogue.tree import Catalogue, CatalogueTool, FieldPath
from weft.agents.catalogue.words import terms
from weft.planner.signature import parameters_of

_NAME: Final = 1.5
_DESCRIPTION: Final = 1.0
_PARAMETER: Final = 1.0
_PARAMETER_TEXT: Final = 0.5
_FIELD: Final = 0.5
"""Weights of a word by its place. Like `_INHERITED` they were chosen on the development queries of
`evals.catalogue`, where they matter little."""

_INHERITED: Final = 0.2
"""The share of the score of each field around a tool that the tool's own score is given."""


class CatalogueIndex:
    """The words of all tools of `catalogue`, and of all its fields.

    The score of a tool is its own by BM25, and a share of the scores of the fields around it: of
    equal tools that in the more fitting field comes first.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._names = list(catalogue.tools)
        bags = [_bag(tool) for tool in catalogue.tools.values()]
        self._tools = Bm25(bags)
        paths = [tool.path for tool in catalogue.tools.values()]
        depths = range(1, max(map(len, paths)) + 1)
        self._levels = [_FieldLevel.of(depth, paths, bags) for depth in depths]

    def scores(self, text: str) -> dict[str, float]:
        """The scores of the tools with any word of `text`."""
        words = terms(text)
        found = self._tools.scores(words)
        for level in self._levels:
            fields = level.index.scores(words)
            for number in found:
                field = level.field_of[number]
                if field is not None:
                    found[number] += _INHERITED * fields.get(field, 0.0)
        return {self._names[number]: score for number, score in found.items()}

    def ranked(self, text: str) -> list[tuple[str, float]]:
        """The tools with any word of `text` and their scores, best first, ties in file order."""
        places = {name: place for place, name in enumerate(self._names)}
        found = self.scores(text).items()
        return sorted(found, key=lambda each: (-each[1], places[each[0]]))

    def fields(self, text: str) -> list[FieldPath]:
        """The fields of the first level by their best tools, the most promising first."""
        best: dict[FieldPath, float] = defaultdict(float)
        for name, score in self.scores(text).items():
            path = self.catalogue.tools[name].path[:1]
            best[path] = max(best[path], score)
        return sorted(self.catalogue.root.groups, key=lambda path: -best[path])


@dataclass(frozen=True, slots=True)
class _FieldLevel:
    """The fields of one depth. `field_of`: the document of each tool's field, by tool."""

    index: Bm25
    field_of: list[int | None]

    @classmethod
    def of(cls, depth: int, paths: list[FieldPath], bags: list[Mapping[str, float]]) -> _FieldLevel:
        pooled: dict[FieldPath, dict[str, float]] = {}
        for path, bag in zip(paths, bags, strict=True):
            if len(path) >= depth:
                sums = pooled.setdefault(path[:depth], defaultdict(float))
                for term, weight in bag.items():
                    sums[term] += weight
        numbers = {path: number for number, path in enumerate(pooled)}
        damped = [{term: log1p(sum_) for term, sum_ in bag.items()} for bag in pooled.values()]
        return cls(Bm25(damped, b=0.75), [numbers.get(path[:depth]) for path in paths])


def _bag(tool: CatalogueTool) -> Mapping[str, float]:
    bag: dict[str, float] = defaultdict(float)
    for text, weight in _texts(tool):
        for term in terms(text):
            bag[term] += weight
    return bag


def _texts(tool: CatalogueTool) -> Iterator[tuple[str, float]]:
    yield tool.name, _NAME
    yield tool.spec.description, _DESCRIPTION
    yield from ((part, _FIELD) for part in tool.path)
    for name, schema in parameters_of(tool.spec).items():
        yield name, _PARAMETER
        text = None if schema is None else schema.get("description")
        if isinstance(text, str):
            yield text, _PARAMETER_TEXT
