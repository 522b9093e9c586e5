"""What a plain YAML scalar means, by the core schema of YAML 1.2. Knows no quoting.

So `no`, `on` and `2026-01-31` are texts here, as in JSON; the traps of YAML 1.1 do not exist.
"""

from __future__ import annotations

import math
import re

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_TRUE = re.compile(r"(?:true|True|TRUE)\Z")
_FALSE = re.compile(r"(?:false|False|FALSE)\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_JSON = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_MAX_DIGITS = 300


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar. Raises: `ValueError` for numbers that JSON does not have."""
    if _NULL.match(text):
        return None
    if _TRUE.match(text) or _FALSE.match(text):
        return text[0] in "tT"
    return _number(text) if text[0] in "+-.0123456789" else text


def joined(text: str) -> str:
    """`text` with escaped surrogate pairs, as JSON writes them, made characters.

    Raises: `ValueError` for half a pair, which no file can hold.
    """
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair is not a character") from None


def _number(text: str) -> int | float | str:
    if _NOT_JSON.match(text):
        raise ValueError(f"{text} is not a number that JSON can hold")
    for pattern, base in ((_DECIMAL, 10), (_OCTAL, 8), (_HEX, 16)):
        if pattern.match(text):
            if len(text) > _MAX_DIGITS:
                raise ValueError(f"a number of {len(text)} digits is too long")
            return int(text, base)
    if not _FLOAT.match(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number
