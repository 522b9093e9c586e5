"""Splits documents into parts at natural boundaries, and checks the quotes of notes.

The parts together are the whole text, in order. A quote may differ from the text in blanks, case
and quotation marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from weft.reasoning.evidence import Evidence
from weft.reasoning.mapreduce.note import Note, UncheckedNote
from weft.reasoning.question import Document

LEAST_CHARS: Final = 4
"""The shortest quote that proves something; shorter ones occur anywhere."""

_SAME: Final = str.maketrans(
    "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2013\u2014\u00a0", '\'\'""""-- '
)
_AROUND: Final = " \t\r\n\"'\u201c\u201d\u2018\u2019\u00ab\u00bb.\u2026"


def locate(text: str, quote: str, start: int, end: int) -> tuple[int, int] | None:
    """The range of `quote` in `text` between `start` and `end`, or None."""
    wanted = quote.strip(_AROUND)
    if len(wanted) < LEAST_CHARS:
        return None
    exact = text.find(wanted, start, end)
    if exact >= 0:
        return exact, exact + len(wanted)
    plain, places = _plain(text[start:end])
    needle, _ = _plain(wanted)
    found = plain.find(needle) if needle.strip() else -1
    if found < 0:
        return None
    return start + places[found], start + places[found + len(needle) - 1] + 1


def _plain(text: str) -> tuple[str, list[int]]:
    """`text` in one case, with single blanks, and the original index of each character."""
    characters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text.translate(_SAME)):
        if letter.isspace():
            if characters and characters[-1] == " ":
                continue
            letter = " "
        for folded in letter.casefold():
            characters.append(folded)
            places.append(place)
    return "".join(characters), places


Measure = Callable[[str], Awaitable[int]]
"""Counts the tokens of a text."""

_CHARS_PER_TOKEN: Final = 5.0
_SHRINK: Final = 0.95
_BOUNDARIES: Final = tuple(
    map(re.compile, (r"\n[ \t]*\n+", r"\n", r"[.!?][\"')\]]?\s+|[\u3002\uff01\uff1f]", r"\s+"))
)
"""Ends of paragraphs, lines, sentences, words; the first kind found is used."""
_JOINER: Final = "\u200d"


async def split(text: str, limit: int, measure: Measure) -> tuple[tuple[int, int], ...]:
    """The `(start, end)` of each part of `text`, in characters.

    A part has at most `limit` tokens (at least 1), unless it is a single character. Measures the
    text about twice, in pieces.
    """
    spans: list[tuple[int, int]] = []
    start, rate = 0, _CHARS_PER_TOKEN
    while start < len(text):
        end, tokens = await _cut(text, start, limit, measure, max(1, int(limit * rate)))
        spans.append((start, end))
        if end < len(text):
            rate = min(_CHARS_PER_TOKEN, 1.1 * (end - start) / max(1, tokens))
        start = end
    return tuple(spans)


async def _cut(text: str, start: int, limit: int, measure: Measure, chars: int) -> tuple[int, int]:
    """The end of the part from `start`, after at most `chars` characters, and its tokens."""
    while True:
        end = boundary(text, start, start + chars)
        tokens = await measure(text[start:end])
        if tokens <= limit or end == start + 1:
            return end, tokens
        fitting = int((end - start) * _SHRINK * limit / tokens)
        chars = max(1, min(end - start - 1, fitting))


def boundary(text: str, start: int, end: int) -> int:
    """The best place to cut `text` in the second half of `start` to `end`, after `start`."""
    if end >= len(text):
        return len(text)
    half = start + (end - start) // 2
    for kind in _BOUNDARIES:
        ends = [found.end() for found in kind.finditer(text, half, end)]
        if ends and ends[-1] > start:
            return ends[-1]
    return _whole_character(text, start, end)


def _whole_character(text: str, start: int, end: int) -> int:
    """`end`, moved back out of a character of several code points."""
    cut = end
    while cut > start + 1 and _continues(text, cut):
        cut -= 1
    return cut if not _continues(text, cut) else end


def _continues(text: str, place: int) -> bool:
    joined = text[place] == _JOINER or text[place - 1] == _JOINER
    return joined or unicodedata.combining(text[place]) != 0


MOST_SOURCES: Final = 8
"""The number of sources that a merged note keeps."""


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """The characters `start` to `end` of `document`."""

    document: Document
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end]

    def evidence(self, start: int, end: int) -> Evidence:
        """The evidence of a range of the document, without a marker."""
        return Evidence("", self.document.name, start, end, self.document.text[start:end])


async def parts_of(
    documents: Sequence[Document], limit: int, measure: Measure
) -> list[DocumentPart]:
    """All `documents` in parts of at most `limit` tokens, in order, without blank parts."""
    return [
        part
        for document in documents
        for start, end in await split(document.text, limit, measure)
        if (part := DocumentPart(document, start, end)).text.strip()
    ]


def looked_up(written: UncheckedNote, part: DocumentPart) -> Note:
    """The note on `part` with its quotes that the part contains; without any it cites the part."""
    ranges = dict.fromkeys(
        found
        for quote in written.quotes
        if (found := locate(part.document.text, quote, part.start, part.end)) is not None
    )
    evidence = tuple(part.evidence(start, end) for start, end in ranges)
    return replace(written.note, evidence=evidence or (part.evidence(part.start, part.end),))


def numbered(notes: Sequence[Note]) -> list[Note]:
    """`notes` with numbered markers for all of their evidence, from `1`."""
    numbers = count(1)
    return [
        replace(
            note,
            evidence=tuple(replace(piece, marker=str(next(numbers))) for piece in note.evidence),
        )
        for note in notes
    ]


def merged(written: UncheckedNote, markers: Sequence[str], notes: Sequence[Note]) -> Note:
    """The note that replaces `notes`, with the sources that its `markers` name.

    Without a known marker it keeps all sources, those of the surest notes first.
    """
    known = {piece.marker: piece for note in notes for piece in note.evidence}
    named = [known[marker] for marker in dict.fromkeys(markers) if marker in known]
    if not named:
        order = sorted(notes, key=lambda note: -note.confidence)
        named = [piece for note in order for piece in note.evidence]
    return replace(written.note, evidence=tuple(named[:MOST_SOURCES]))
