"""Notes on parts of documents: parsing, weighing and grouping."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.values import JsonSchema
from weft.reasoning.evidence import Evidence
from weft.reasoning.parsing import object_with, read_labels

NOTHING: Final = "NO INFORMATION"
"""What a model writes for a part that says nothing about the question."""

MOST_QUOTES: Final = 3
HIGHEST: Final = 5.0
UNSURE: Final = 1.0
"""The confidence of a note that does not state one."""

_LABELS: Final = ("Information", "Quote", "Rationale", "Answer", "Confidence", "Sources")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_INFORMATION_CHARS: Final = 400
_QUOTE_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class Note:
    """What a part says about the question. `confidence`, from 0 to 5, is the model's own."""

    information: str
    answer: str = ""
    confidence: float = UNSURE
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class UncheckedNote:
    """A note as the model wrote it: `quotes` and `sources` are unchecked claims."""

    note: Note
    quotes: tuple[str, ...] = ()
    sources: str = ""


def note_schema(*, quotes: bool) -> JsonSchema:
    """The schema of a note, with `quotes` of the text or with its sources."""
    quote = {"type": "array", "items": _text(_QUOTE_CHARS), "maxItems": MOST_QUOTES}
    properties: dict[str, Any] = {
        "information": _text(_INFORMATION_CHARS),
        "quotes" if quotes else "sources": quote if quotes else _text(_QUOTE_CHARS),
        "rationale": _text(_QUOTE_CHARS),
        "answer": _text(_QUOTE_CHARS),
        "confidence": {"type": "integer", "minimum": 0, "maximum": int(HIGHEST)},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(chars: int) -> JsonSchema:
    """A string schema whose limit leaves room for the rest of the note."""
    return {"type": "string", "maxLength": chars}


def read_note(text: str) -> UncheckedNote | None:
    """The note in a model's output: JSON, labelled lines, or plain text. None: it says nothing.

    Plain text is information with the confidence `UNSURE`.
    """
    parts = _from_json(text) or _from_labels(text)
    information = parts["information"].strip()
    if _says_nothing(information) and _says_nothing(parts["answer"]):
        return None
    confidence = min(HIGHEST, max(0.0, float(parts["confidence"])))
    note = Note(information, parts["answer"].strip(), confidence, parts["rationale"].strip())
    return UncheckedNote(note, tuple(parts["quotes"][:MOST_QUOTES]), parts["sources"])


def _says_nothing(text: str) -> bool:
    plain = text.strip(" \t\n.[]\"'*").upper()
    return not plain or plain.startswith(NOTHING)


def _from_json(text: str) -> dict[str, Any] | None:
    written = object_with(("information", "answer"), text)
    if written is None:
        return None
    quotes = written.get("quotes", written.get("quote", []))
    return {
        "information": _words(written.get("information")),
        "answer": _words(written.get("answer")),
        "rationale": _words(written.get("rationale")),
        "quotes": [_words(quote) for quote in (quotes if isinstance(quotes, list) else [quotes])],
        "sources": _words(written.get("sources")),
        "confidence": _confidence(_words(written.get("confidence"))),
    }


def _from_labels(text: str) -> dict[str, Any]:
    found = read_labels(text, _LABELS)
    if not found:
        found = {"Information": [text]}
    first = {label: found.get(label, [""])[0] for label in _LABELS}
    return {
        "information": first["Information"],
        "answer": first["Answer"],
        "rationale": first["Rationale"],
        "quotes": [quote for quote in found.get("Quote", []) if quote],
        "sources": " ".join(found.get("Sources", [])),
        "confidence": _confidence(first["Confidence"]),
    }


def _words(value: object) -> str:
    """A JSON value as text; None becomes empty."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def _confidence(text: str) -> float:
    number = _NUMBER.search(text)
    return float(number[0]) if number else UNSURE


_WORDS: Final = re.compile(r"\w+")


def weigh(notes: Sequence[Note]) -> tuple[tuple[str, float], ...]:
    """Each answer of `notes` with the sum of its confidence, the heaviest first.

    Answers of the same words, in any case, count as one, in the spelling of the surest note; of
    equal weights the earlier comes first.
    """
    weights: dict[str, float] = {}
    surest_note: dict[str, Note] = {}
    for note in notes:
        words = " ".join(_WORDS.findall(note.answer.casefold()))
        if not words or note.answer.upper().startswith(NOTHING):
            continue
        weights[words] = weights.get(words, 0.0) + note.confidence
        if words not in surest_note or note.confidence > surest_note[words].confidence:
            surest_note[words] = note
    order = sorted(weights, key=lambda words: -weights[words])
    return tuple((surest_note[words].answer, weights[words]) for words in order)


def surest(notes: Sequence[Note], keep: int) -> list[Note]:
    """The `keep` notes of the highest confidence, in their old order; of equals the earlier."""
    order = sorted(range(len(notes)), key=lambda place: -notes[place].confidence)
    return [notes[place] for place in sorted(order[:keep])]


def fitting_groups(sizes: Sequence[int], room: int) -> list[range]:
    """Groups of neighbours that fit into `room` together; a note that is too large is alone."""
    groups: list[range] = []
    start = filled = 0
    for place, size in enumerate(sizes):
        if place > start and filled + size > room:
            groups.append(range(start, place))
            start, filled = place, 0
        filled += size
    return [*groups, range(start, len(sizes))] if sizes else []
