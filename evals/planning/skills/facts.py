"""Facts of a text: its numbers, and the names in it. Decides no case.

Word overlap would reward a reply that repeats the dialogue; what is counted instead is which facts
of a result a reply states, which facts it states that nothing supports, and whether it is an echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

ECHO_WORDS: Final = 8
"""As many words of the dialogue in a row are an echo."""

_NUMBER: Final = re.compile(
    r"(?<![^\W_])(?:\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?=[A-Za-z]{0,3}(?![^\W_]))"
)
"""Units and endings of three letters may follow: 2pm, 1st, 5kg."""
_CODE: Final = re.compile(r"(?<![^\W_])(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]+")
_TIME: Final = re.compile(r"\b(\d{1,2}):\d{2}")
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_SENTENCE: Final = re.compile(r"(?:^|[.!?:\n\"\u201c(\[*-])\s*$")
_TITLE: Final = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St)\.")
"""Whose full stop ends no sentence."""

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COMMON: Final = frozenset((*_MONTHS, *_DAYS, "am", "pm", "i", "i'm", "i've", "i'll", "i'd"))


def stated(text: str) -> frozenset[str]:
    """The numbers in `text`, and its names: capitalised words inside sentences.

    Months and weekdays are none: they stand for numbers elsewhere.
    """
    text = _TITLE.sub(r"\1", text)
    names = (
        found[0].lower()
        for found in _WORD.finditer(text)
        if found[0][0].isupper() and not _SENTENCE.search(text[: found.start()][-4:])
    )
    return frozenset((*_numbers(text), *(_bare(name) for name in names if name not in _COMMON)))


def supported(text: str) -> frozenset[str]:
    """All that `text` supports: its numbers, hours also of twelve, months, and all words."""
    hours = {str((int(found[1]) - 1) % 12 + 1) for found in _TIME.finditer(text)}
    months = {str(place) for place, name in enumerate(_MONTHS, 1) if name in text.lower()}
    words = {_bare(found[0].lower()) for found in _WORD.finditer(text)}
    return frozenset((*_numbers(text), *hours, *months, *words))


def result_facts(result: Any) -> frozenset[str]:
    """The numbers of a recorded result, and the capitalised words of its values."""
    found: set[str] = set()
    for leaf in _leaves(result):
        found.update(_numbers(leaf))
        words = (word[0] for word in _WORD.finditer(leaf) if word[0][0].isupper())
        found.update(_bare(word.lower()) for word in words)
    return frozenset(found - _COMMON)


def echoes(text: str, dialogue: str) -> bool:
    """Whether eight words in a row, of letters and digits, are those of `dialogue`."""
    mine, theirs = _runs(text), _runs(dialogue)
    return not set(mine).isdisjoint(theirs)


def _runs(text: str) -> list[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return [tuple(words[at : at + ECHO_WORDS]) for at in range(len(words) - ECHO_WORDS + 1)]


def _numbers(text: str) -> Iterator[str]:
    """Each number in one spelling: no thousands separators, no zeros around. Codes of letters and
    digits as they are.
    """
    for found in _CODE.finditer(text):
        if not _NUMBER.match(found[0]):
            yield found[0].lower()
    for found in _NUMBER.finditer(text):
        whole, _, part = found[0].replace(",", "").partition(".")
        part = part.rstrip("0")
        yield f"{whole.lstrip('0') or '0'}{'.' if part else ''}{part}"


def _bare(word: str) -> str:
    """Without a possessive ending."""
    return re.sub(r"['\u2019]s?$", "", word)


def _leaves(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list):
            pending.extend(one)
        elif one is not None and not isinstance(one, bool):
            yield str(one)
