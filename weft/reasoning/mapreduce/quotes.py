"""Finds in a document what a model says it quotes, and where. Knows no model.

A quote need not be spelt exactly: blanks, case and the kind of quotation marks may differ.
"""

from __future__ import annotations

from typing import Final

LEAST_CHARS: Final = 4
"""Shorter quotes stand anywhere, and prove nothing."""

_SAME: Final = str.maketrans(
    "\u2018\u2019\u201c\u201d\u00ab\u00bb\u2013\u2014\u00a0", '\'\'""""-- '
)
_AROUND: Final = " \t\r\n\"'\u201c\u201d\u2018\u2019\u00ab\u00bb.\u2026"


def locate(text: str, quote: str, start: int, end: int) -> tuple[int, int] | None:
    """The range of `quote` in `text`, between `start` and `end`; None: it does not stand there."""
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
    """`text` in one case, each run of blanks as one, and where each of its characters stood."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text.translate(_SAME)):
        if letter.isspace():
            if letters and letters[-1] == " ":
                continue
            letter = " "
        for folded in letter.casefold():
            letters.append(folded)
            places.append(place)
    return "".join(letters), places
