"""Words of names and texts for search: split identifiers, singulars, the clauses of a request."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_CLAUSE: Final = re.compile(
    r"[.!?;:]\s+|\n+|,\s+"
    r"|,?\s+(?:and|then|also|after that|afterwards|as well as|finally|lastly)\s+",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)")
_STOP_WORDS: Final = frozenset(
    """
    a about am an any are as at be been being but by can could did do does for from had has have
    he her him his how i if in into is it its itself just let like may me might more most my no not
    of off on once only or our out over own please she should so some such than that the their them
    then there these they this those through to too under until up us very was we were what when
    where which while who whom why will with would you your also and
    """.split()  # noqa: SIM905
)
_MOST_CHARS: Final = 40


def words(text: str) -> Iterator[str]:
    """The words of `text` in lower case without accents; `getWeather_data` is three of them.

    Letters of other scripts stay together as they are written.
    """
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    for found in _PART.finditer(plain):
        yield found[0].lower()[:_MOST_CHARS]


def terms(text: str) -> list[str]:
    """The words of `text` in the singular, in order, without words that say nothing."""
    return [stem(word) for word in words(text) if word not in _STOP_WORDS]


def clauses(text: str) -> list[str]:
    """The parts of an English request that may each need their own tool, without quotations."""
    found = [part.strip() for part in _CLAUSE.split(_QUOTED.sub(" ", text))]
    return [part for part in found if part]


_LEAST_STEM: Final = 4


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """An English `word` in the singular: no more, because coarser stems lost tools in our tests."""
    if not word.isascii() or len(word) < _LEAST_STEM:
        return word
    if word.endswith("ies") and len(word) > _LEAST_STEM:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
