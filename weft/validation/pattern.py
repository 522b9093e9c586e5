"""Regular expressions of schemas, matched in linear time by the `regex` crate.

Knows no schema. Look-around and back references need backtracking, and are refused.
"""

from __future__ import annotations

import re
from typing import Final

from jsonschema_rs import Draft202012Validator, RegexOptions
from jsonschema_rs import ValidationError as LibraryError

from weft.validation.bounds import MAX_PATTERN_BYTES

LINEAR: Final = RegexOptions(size_limit=MAX_PATTERN_BYTES)
_SMALL: Final = RegexOptions(size_limit=4 * 1024)
_LARGE_WEIGHT: Final = 32
_SHOWN: Final = 80
_BACKTRACKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?>|[*+?}]\+")


def pattern_error(pattern: str) -> str | None:
    """Why `pattern` cannot be used, or None when it can."""
    if _compiles(pattern, LINEAR):
        return None
    said = pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}..."
    if _BACKTRACKING.search(pattern):
        return (
            f"the pattern {said!r} cannot be matched in linear time:"
            " look-around, back references and possessive repetition are not supported"
        )
    return f"the pattern {said!r} is no regular expression, or too large"


def pattern_weight(pattern: str) -> int:
    """How much matching one character costs at worst, in units of a small pattern's cost."""
    return 1 if _compiles(pattern, _SMALL) else _LARGE_WEIGHT


def _compiles(pattern: str, options: RegexOptions) -> bool:
    try:
        Draft202012Validator({"pattern": pattern}, pattern_options=options, offline=True)
    except (LibraryError, ValueError):
        return False
    return True
