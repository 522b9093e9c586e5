"""Tolerant parsers of model output: lists, labelled lines, JSON inside other text.

Unreadable parts are reported, never guessed and never executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

_BACKTICKS: Final = re.compile(r"`{3,}")


def fence(text: str) -> str:
    """`text` between two lines of backticks, with more of them than any run inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def read_labels(text: str, labels: Sequence[str]) -> dict[str, list[str]]:
    """The text after each of `labels` in `text`, up to the next label or the end, in order.

    Labels may be written in any case, numbered, and set in bold. Missing labels have no entry; text
    before the first label is ignored.
    """
    either = "|".join(re.escape(label) for label in labels)
    begins = re.compile(
        rf"^[ \t]{{0,8}}(?:\d{{1,3}}[.)] ?)?[*_#]{{0,3}} ?({either})[*_]{{0,2}} ?:[*_]{{0,2}}",
        re.IGNORECASE | re.MULTILINE,
    )
    canonical = {label.casefold(): label for label in labels}
    found = list(begins.finditer(text))
    parts: dict[str, list[str]] = {}
    for index, label in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        part = text[label.end() : end].strip()
        parts.setdefault(canonical[label[1].casefold()], []).append(part)
    return parts


_ATTEMPTS: Final = 20


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


_MEMBER: Final = re.compile(
    r'"(\w{1,40})"\s*:\s*(?:"((?:[^"\\]|\\.)*)("|\\?\Z)|(-?\d+(?:\.\d+)?))', re.DOTALL
)
"""A member whose value is a text, perhaps without an end, or a number."""


def object_with(keys: Collection[str], text: str) -> dict[str, Any] | None:
    """The first JSON object in `text` that has one of `keys`, or None.

    Of an object that was cut off: the strings and numbers that are complete.
    """
    start = -1
    for _ in range(_ATTEMPTS):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            value, _end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if any(key in value for key in keys):
            return dict(value)
    begun = _cut_off(text)
    return begun if any(key in begun for key in keys) else None


def _cut_off(text: str) -> dict[str, Any]:
    """The strings and numbers of the unterminated object that `text` begins with."""
    if not text.strip().removeprefix("```json").removeprefix("```").lstrip().startswith("{"):
        return {}
    members: dict[str, Any] = {}
    for key, value, _, number in _MEMBER.findall(text):
        try:
            members.setdefault(key, _DECODER.decode(number or f'"{value}"'))
        except ValueError:
            members.setdefault(key, value)
    return members


_NUMBERED: Final = re.compile(
    r"[*_#]{0,4} ?(?:(?:step|point) )?\d{1,4}[.):][*_]{0,2}(.*)", re.IGNORECASE
)
_BULLET: Final = re.compile(r"[-*\u2022\u2013] (.*)")
_WITHIN: Final = re.compile(r" (?=\d{1,3}[.)] \S)")
_EMPHASIS: Final = re.compile(r"[*_`#]+")
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PointList:
    """The points of a list, in order; `duplicates` and `left_out` count the others."""

    points: tuple[str, ...]
    duplicates: int = 0
    left_out: int = 0


def read_points(text: str, *, most: int, chars: int) -> PointList:
    """At most `most` different points of the list in `text`, each at most `chars` long.

    Numbered lines count; without any, lines with a bullet. Points of the same words, in any case,
    are duplicates.
    """
    found: dict[str, str] = {}
    written = 0
    for line in _lines(text):
        point = _EMPHASIS.sub("", line).strip(" \t:;")[:chars].strip()
        words = " ".join(_WORDS.findall(point.casefold()))
        if words:
            written += 1
            found.setdefault(words, point)
    kept = tuple(found.values())[:most]
    return PointList(kept, written - len(found), len(found) - len(kept))


def _lines(text: str) -> list[str]:
    plain = (" ".join(line.split()) for line in text.splitlines())
    lines = [part for line in plain for part in _split(line)]
    numbered = [found[1] for line in lines if (found := _NUMBERED.match(line))]
    return numbered or [found[1] for line in lines if (found := _BULLET.match(line))]


def _split(line: str) -> list[str]:
    """The points of a list that was written in one line."""
    return _WITHIN.split(line) if _NUMBERED.match(line) else [line]


__all__ = ["PointList", "fence", "object_with", "read_labels", "read_points"]
