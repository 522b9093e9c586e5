"""A list of points as models write it: numbered or bulleted, with or without talk around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBERED: Final = re.compile(
    r"[*_#]{0,4} ?(?:(?:step|point) )?\d{1,4}[.):][*_]{0,2}(.*)", re.IGNORECASE
)
_BULLET: Final = re.compile(r"[-*\u2022\u2013] (.*)")
_WITHIN: Final = re.compile(r" (?=\d{1,3}[.)] \S)")
_EMPHASIS: Final = re.compile(r"[*_`#]+")
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Points:
    """The points that were read, in order; how many repeated an earlier one, or were too many."""

    points: tuple[str, ...]
    duplicates: int = 0
    left_out: int = 0


def read_points(text: str, *, most: int, chars: int) -> Points:
    """At most `most` different points of the list in `text`, each at most `chars` long.

    Where lines are numbered, only those count; else those with a bullet; a text without either has
    no points. Points of the same words, in whatever case, are one.
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
    return Points(kept, written - len(found), len(found) - len(kept))


def _lines(text: str) -> list[str]:
    plain = (" ".join(line.split()) for line in text.splitlines())
    lines = [part for line in plain for part in _split(line)]
    numbered = [found[1] for line in lines if (found := _NUMBERED.match(line))]
    return numbered or [found[1] for line in lines if (found := _BULLET.match(line))]


def _split(line: str) -> list[str]:
    """The points of a list that was written in one line."""
    return _WITHIN.split(line) if _NUMBERED.match(line) else [line]
