"""The parts of documents, and the notes on them with citations that were looked up. No model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from weft.reasoning.evidence import Evidence
from weft.reasoning.mapreduce.note import Note, Written
from weft.reasoning.mapreduce.quotes import locate
from weft.reasoning.mapreduce.splitting import Measure, split
from weft.reasoning.question import Document

MOST_SOURCES: Final = 8
"""How many sources a merged note keeps."""


@dataclass(frozen=True, slots=True)
class Part:
    """The characters `start` to `end` of `document`."""

    document: Document
    start: int
    end: int

    @property
    def text(self) -> str:
        """What they spell."""
        return self.document.text[self.start : self.end]

    def evidence(self, start: int, end: int) -> Evidence:
        """A range of the document, which has no marker yet."""
        return Evidence("", self.document.name, start, end, self.document.text[start:end])


async def parts_of(documents: Sequence[Document], limit: int, measure: Measure) -> list[Part]:
    """All `documents` in parts of at most `limit` tokens, in order; blank ones are left out."""
    return [
        part
        for document in documents
        for start, end in await split(document.text, limit, measure)
        if (part := Part(document, start, end)).text.strip()
    ]


def looked_up(written: Written, part: Part) -> Note:
    """The note on `part` with those of its quotes that stand there; else the part is its source."""
    ranges = dict.fromkeys(
        found
        for quote in written.quotes
        if (found := locate(part.document.text, quote, part.start, part.end)) is not None
    )
    evidence = tuple(part.evidence(start, end) for start, end in ranges)
    return replace(written.note, evidence=evidence or (part.evidence(part.start, part.end),))


def numbered(notes: Sequence[Note]) -> list[Note]:
    """`notes` with markers for all of their evidence: `1`, `2` and so on."""
    numbers = count(1)
    return [
        replace(
            note,
            evidence=tuple(replace(piece, marker=str(next(numbers))) for piece in note.evidence),
        )
        for note in notes
    ]


def merged(written: Written, markers: Sequence[str], notes: Sequence[Note]) -> Note:
    """The note that stands for `notes`, with the sources it names by `markers`.

    One that names none of theirs keeps all, the surest notes' first.
    """
    known = {piece.marker: piece for note in notes for piece in note.evidence}
    named = [known[marker] for marker in dict.fromkeys(markers) if marker in known]
    if not named:
        order = sorted(notes, key=lambda note: -note.confidence)
        named = [piece for note in order for piece in note.evidence]
    return replace(written.note, evidence=tuple(named[:MOST_SOURCES]))
