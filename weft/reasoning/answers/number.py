"""Numbers as people and models write them, exactly."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_MOST_DIGITS: Final = 200
_MOST_EXPONENT: Final = 200

_GROUPED: Final = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL: Final = r"(?:\d+(?:\.\d*)?|\.\d+)"
_PLAIN: Final = re.compile(rf"([-+]?)({_DECIMAL})(?:\s*[eE]([-+]?\d{{1,4}}))?")
_SCIENTIFIC: Final = re.compile(
    rf"([-+]?)({_DECIMAL})\s*\*\s*10\s*\^\s*\{{?\s*([-+]?\d{{1,4}})\s*\}}?"
)
_QUOTIENT: Final = re.compile(
    rf"([-+]?)\(?\s*([-+]?{_DECIMAL})\s*\)?\s*/\s*\(?\s*([-+]?{_DECIMAL})\s*\)?"
)
_MIXED: Final = re.compile(r"([-+]?)(\d+)\s+(\d+)\s*/\s*(\d+)")
_POWER: Final = re.compile(r"([-+]?)(\d{1,6})\s*\^\s*\{?\s*(\d{1,3})\s*\}?")
_UNIT: Final = re.compile(
    r"(?P<value>.*?[\d)}])\s*(?:%|(?P<unit>[a-zA-Z\u00b5/*^\u00b2\u00b3 .]*?[a-zA-Z\u00b5]{1,20})"
    r"\s*(?:\^\s*\{?-?\d\}?|[\u00b2\u00b3])?)\.?"
)
_SENTENCE: Final = re.compile(
    r"(?i)\b(?:am|and|are|as|be|because|been|but|can|could|did|do|does|equals|had|has|have|if|is|may"
    r"|might|must|no|nor|not|or|should|so|than|that|then|to|was|were|when|where|which|will|would)\b"
)
"""With one of these words after its number, a text is a sentence about the number."""
_SCALES: Final = {
    "dozen": 12,
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_MONEY: Final = re.compile(r"^([-+]?)\s*(?:\$|€|£|USD|EUR)\s*")


def number(text: str) -> Fraction | None:
    """The exact value of `text`; None: it is not a number, or has too many digits.

    Reads 1,234, -3, 0.50, .5, 1e3, 2*10^3, 2^10, 3/4, 1 1/2, $5, 12 cm, 50%, 2 million. A unit or a
    percent sign is dropped, not converted: 50% is 50. "17 is not prime" is not a number with a
    unit.
    """
    if len(text) > _MOST_DIGITS:
        return None
    bare = _GROUPED.sub(lambda found: found[0].replace(",", ""), text.strip().rstrip("."))
    bare = _MONEY.sub(r"\1", bare.strip())
    value = _value(bare)
    if value is not None or (found := _UNIT.fullmatch(bare)) is None:
        return value
    value = _value(found["value"])
    words = (found["unit"] or "").casefold().split()
    if value is None or _SENTENCE.search(found["unit"] or ""):
        return None
    return value * _SCALES.get(words[0], 1) if words else value


def written(value: Fraction) -> str:
    """`value` as it is written in a key: 3, -3/4."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{value.numerator}/{value.denominator}"


def _value(text: str) -> Fraction | None:
    text = _unwrapped(text.strip())
    for pattern, read in _READERS:
        if (found := pattern.fullmatch(text)) is not None:
            return read(found)
    return None


def _unwrapped(text: str) -> str:
    while len(text) > 2 and (text[0], text[-1]) in (("(", ")"), ("{", "}")):
        inner = text[1:-1].strip()
        if any(mark in inner for mark in "(){},"):
            break
        text = inner
    return text


def _sign(found: re.Match[str]) -> int:
    return -1 if found[1] == "-" else 1


def _plain(found: re.Match[str]) -> Fraction | None:
    exponent = int(found[3] or 0)
    if abs(exponent) > _MOST_EXPONENT:
        return None
    return _sign(found) * Fraction(_digits(found[2])) * Fraction(10) ** exponent


def _quotient(found: re.Match[str]) -> Fraction | None:
    below = Fraction(_digits(found[3]))
    return _sign(found) * Fraction(_digits(found[2])) / below if below else None


def _mixed(found: re.Match[str]) -> Fraction | None:
    whole, above, below = (int(part) for part in found.groups()[1:])
    return _sign(found) * (whole + Fraction(above, below)) if below else None


def _power(found: re.Match[str]) -> Fraction | None:
    exponent = int(found[3])
    return _sign(found) * Fraction(int(found[2]) ** exponent) if exponent <= 64 else None


def _digits(text: str) -> str:
    return text.rstrip(".") if not text.startswith(".") else f"0{text}"


_READERS: Final = (
    (_PLAIN, _plain),
    (_SCIENTIFIC, _plain),
    (_POWER, _power),
    (_MIXED, _mixed),
    (_QUOTIENT, _quotient),
)
