"""A knowledge graph of triples, from JSON, JSON lines, CSV or TSV, based on networkx.

Every triple records its source: a range of characters of a document. Results keep the order of the
triples.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

import networkx as nx

from weft.core.errors import BuildError, InputError
from weft.reasoning.question import Document

MOST_TRIPLES: Final = 200_000

_NAMES: Final = (
    ("subject", "head", "source", "from", "s"),
    ("relation", "predicate", "type", "edge", "r", "p"),
    ("object", "tail", "target", "to", "o"),
)
_REMEDY: Final = 'a triple is ["Bonn", "lies on", "Rhine"], or has "subject", "relation", "object"'
_BLANK: Final = "\ufeff \t\r\n"
_LIST: Final = re.compile(r'\A[\ufeff\s]*(?:\{\s*"\w+"\s*:\s*)?\[(?=\s*[\[{\]])')
"""The beginning of a list of triples, alone or as the first member of an object."""

_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact, and its source: the characters `start` to `end` of a document."""

    subject: str
    relation: str
    object: str
    document: str
    start: int
    end: int
    text: str


def read_triples(document: Document) -> tuple[Triple, ...]:
    """The triples of `document`, in order.

    JSON is a list of triples, alone or the first member of an object, or a triple on each line.
    Anything else is CSV, separated by tabs, semicolons or commas, with a header or without.

    Raises: `InputError` with the position of a malformed triple.
    """
    is_json = document.text.lstrip(_BLANK).startswith(("[", "{"))
    spans = _from_json(document) if is_json else _from_csv(document)
    triples = []
    for parts, start, end in spans:
        triples.append(Triple(*parts, document.name, start, end, document.text[start:end]))
        if len(triples) > MOST_TRIPLES:
            raise InputError(f"{document.name} has more than {MOST_TRIPLES:,} triples")
    return tuple(triples)


TripleSpan = tuple[tuple[str, str, str], int, int]


def _from_json(document: Document) -> Iterator[TripleSpan]:
    text = document.text
    opening = _LIST.match(text)
    place = opening.end() if opening else len(text) - len(text.lstrip(_BLANK))
    while True:
        place = _skip(text, place)
        if place >= len(text) or text[place] == "]":
            return
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise _wrong(document, place, f"is not JSON: {error}") from None
        parts = _triple(value)
        if parts is None:
            raise _wrong(document, place, "is no triple")
        yield parts, place, end
        place = end


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    return place


def _triple(value: Any) -> tuple[str, str, str] | None:
    """The three texts of a triple in JSON, or None."""
    if isinstance(value, Mapping):
        value = [next((value[n] for n in names if n in value), None) for names in _NAMES]
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(_NAMES):
        return None
    if not all(isinstance(part, (str, int, float)) for part in value):
        return None
    subject, relation, of = (" ".join(str(part).split()) for part in value)
    return (subject, relation, of) if subject and relation and of else None


def _from_csv(document: Document) -> Iterator[TripleSpan]:
    lines = document.text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    first = next((line for line in lines if line.strip()), "")
    separator = next((mark for mark in "\t;" if mark in first), ",")
    reader = csv.reader(lines, delimiter=separator)
    columns: tuple[int, ...] | None = None
    begun = 0
    try:
        for row in reader:
            start, begun = starts[begun], reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns = _header(row)
                if columns is not None:
                    continue
                columns = (0, 1, 2)
            parts = _triple([row[n] if n < len(row) else "" for n in columns])
            if parts is None:
                raise _wrong(document, start, "is no triple")
            yield parts, start, start + len(document.text[start : starts[begun]].rstrip("\r\n"))
    except csv.Error as error:
        raise _wrong(document, starts[begun], f"is not CSV: {error}") from None


def _header(row: Sequence[str]) -> tuple[int, ...] | None:
    """The columns of the three parts, if `row` is a header."""
    cells = [cell.strip().lstrip("\ufeff").casefold() for cell in row]
    found = [next((cells.index(n) for n in names if n in cells), None) for names in _NAMES]
    return tuple(place for place in found if place is not None) if None not in found else None


def _wrong(document: Document, place: int, what: str) -> InputError:
    line = document.text.count("\n", 0, place) + 1
    excerpt = " ".join(document.text[place : place + 60].split())
    return InputError(f"{document.name}:{line}: {excerpt!r} {what}", hint=_REMEDY)


_WORD: Final = re.compile(r"\w+")
_LEAST_OVERLAP: Final = 0.5
_LEAST_LIKENESS: Final = 0.8
_MOST_FUZZY: Final = 5_000
"""The largest number of names for a fuzzy search; in a larger graph only whole words match."""

_PATHS: Final = 3


class KnowledgeGraph:
    """The graph of `triples`. Names of the same words, in any case, are one entity."""

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
        return len(self._triples)

    def triple(self, number: int) -> Triple:
        """The triple `number`, from 0."""
        return self._triples[number]

    def find(self, name: str) -> str | None:
        """The entity whose name is most similar to `name`, or None."""
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
        """The entities whose whole names occur in `text`, the longest first, at most `most`."""
        padded = f" {_key(text)} "
        found = [entity for entity in self._names if entity and f" {entity} " in padded]
        return tuple(self._names[entity] for entity in sorted(found, key=len, reverse=True)[:most])

    def around(self, name: str, relation: str = "", most: int = 12) -> tuple[int, ...]:
        """The numbers of the triples about the entity `name`, as `find` returns it.

        Triples with a relation like `relation` come first, the others in their original order.
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
        """The numbers of the triples on the shortest paths of at most `hops` triples."""
        ends = (_key(one), _key(other))
        if ends[0] == ends[1] or not all(end in self._graph for end in ends):
            return ()
        try:
            paths = list(islice(nx.all_shortest_paths(self._graph, *ends), _PATHS))
        except nx.NetworkXNoPath:
            return ()
        if len(paths[0]) - 1 > hops:
            return ()
        steps = (step for path in paths for step in pairwise(path))
        numbers = (number for a, b in steps for number in self._graph[a][b]["triples"])
        return tuple(islice(dict.fromkeys(numbers), most))


def _key(name: str) -> str:
    return " ".join(_WORD.findall(name.casefold())) or " ".join(name.split())


def _overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """The Jaccard similarity of two sets of words."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first and second else 0.0


MOST_BYTES: Final = 16 * 2**20
"""The size limit of a file of triples, which is read at once while the run waits."""

GraphSource = str | Sequence[Sequence[str]] | None
"""The path of a file, a list of triples, or None: only the documents."""


def check_source(given: Any) -> GraphSource:
    """`given` as a checked source. Raises: `BuildError`."""
    if given is None or (isinstance(given, str) and given):
        return given
    if isinstance(given, Sequence) and all(map(_is_triple, given)):
        return tuple(given)
    raise BuildError(
        "mirage: setting 'graph' is neither a file nor a list of triples",
        hint='for example graph: facts.csv, or graph: [["Bonn", "lies on", "Rhine"]]',
    )


def graph_of(source: GraphSource, documents: Sequence[Document]) -> KnowledgeGraph:
    """The graph of all triples in `source`, followed by those in `documents`.

    Raises: `InputError` with the position of a malformed triple.
    """
    triples: list[Triple] = []
    if isinstance(source, str):
        triples += read_triples(Document(Path(source).name, _text_of(Path(source))))
    elif source is not None:
        triples += [_stated(number, triple) for number, triple in enumerate(source, 1)]
    for document in documents:
        triples += read_triples(document)
    return KnowledgeGraph(triples)


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"{path} is larger than {MOST_BYTES // 2**20} MiB")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(
            f"the knowledge graph {path} cannot be read: {error}",
            hint="give a file of triples as JSON or CSV, in UTF-8",
        ) from None


def _is_triple(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and len(given) == len(("subject", "relation", "object"))
        and all(isinstance(part, str) and part.strip() for part in given)
    )


def _stated(number: int, triple: Sequence[str]) -> Triple:
    subject, relation, of = (" ".join(part.split()) for part in triple)
    text = f"{subject} | {relation} | {of}"
    return Triple(subject, relation, of, f"graph[{number}]", 0, len(text), text)
