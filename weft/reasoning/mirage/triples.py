"""Triples of subject, relation and object, read from JSON, JSON lines, CSV or TSV.

Every triple knows which characters of which document state it. Opens no file.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import InputError
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
    """A fact, and the characters `start` to `end` of the document that state it."""

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

    Raises: `InputError`, which names the place, for what is no triple.
    """
    is_json = document.text.lstrip(_BLANK).startswith(("[", "{"))
    spans = _from_json(document) if is_json else _from_csv(document)
    triples = []
    for parts, start, end in spans:
        triples.append(Triple(*parts, document.name, start, end, document.text[start:end]))
        if len(triples) > MOST_TRIPLES:
            raise InputError(f"{document.name} has more than {MOST_TRIPLES:,} triples")
    return tuple(triples)


Found = tuple[tuple[str, str, str], int, int]


def _from_json(document: Document) -> Iterator[Found]:
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
    """The three texts of a triple as JSON has it; None: it is none."""
    if isinstance(value, Mapping):
        value = [next((value[n] for n in names if n in value), None) for names in _NAMES]
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(_NAMES):
        return None
    if not all(isinstance(part, (str, int, float)) for part in value):
        return None
    subject, relation, of = (" ".join(str(part).split()) for part in value)
    return (subject, relation, of) if subject and relation and of else None


def _from_csv(document: Document) -> Iterator[Found]:
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
    """The columns of the three parts, when `row` names them."""
    cells = [cell.strip().lstrip("\ufeff").casefold() for cell in row]
    found = [next((cells.index(n) for n in names if n in cells), None) for names in _NAMES]
    return tuple(place for place in found if place is not None) if None not in found else None


def _wrong(document: Document, place: int, what: str) -> InputError:
    line = document.text.count("\n", 0, place) + 1
    said = " ".join(document.text[place : place + 60].split())
    return InputError(f"{document.name}:{line}: {said!r} {what}", hint=_REMEDY)
