"""What was found in one part of the documents, as a value, and how a model's words become one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from weft.core.values import JsonSchema
from weft.reasoning.evidence import Evidence
from weft.reasoning.reading import labelled, object_with

NOTHING: Final = "NO INFORMATION"
"""What a model writes where a part says nothing about the question."""

MOST_QUOTES: Final = 3
HIGHEST: Final = 5.0
UNSURE: Final = 1.0
"""The confidence of a note that does not say how sure it is."""

_LABELS: Final = ("Information", "Quote", "Rationale", "Answer", "Confidence", "Sources")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_INFORMATION_CHARS: Final = 400
_QUOTE_CHARS: Final = 160


@dataclass(frozen=True, slots=True)
class Note:
    """What a part says about the question. `confidence` is from 0 to 5, by the model's own word."""

    information: str
    answer: str = ""
    confidence: float = UNSURE
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A note as it was written: `quotes` and `sources` are claims that nobody has checked yet."""

    note: Note
    quotes: tuple[str, ...] = ()
    sources: str = ""


def note_schema(*, quotes: bool) -> JsonSchema:
    """What a model's note can be held to; with `quotes` of the text, else with its sources."""
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
    """A text that leaves room for the rest of the note."""
    return {"type": "string", "maxLength": chars}


def read_note(text: str) -> Written | None:
    """The note in what a model wrote: JSON, labelled lines, or any words. None: nothing was found.

    Words in no form at all are information of which the model is unsure.
    """
    parts = _from_json(text) or _from_labels(text)
    information = parts["information"].strip()
    if _says_nothing(information) and _says_nothing(parts["answer"]):
        return None
    confidence = min(HIGHEST, max(0.0, float(parts["confidence"])))
    note = Note(information, parts["answer"].strip(), confidence, parts["rationale"].strip())
    return Written(note, tuple(parts["quotes"][:MOST_QUOTES]), parts["sources"])


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
    found = labelled(text, _LABELS)
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
    """A JSON value as text; None is none."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def _confidence(text: str) -> float:
    number = _NUMBER.search(text)
    return float(number[0]) if number else UNSURE
