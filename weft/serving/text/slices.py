"""Cuts JSON text into its parts without rewriting them: numbers and escapes stay as they are."""

from __future__ import annotations

import json
import re
from typing import NoReturn

_BLANKS = re.compile(r"[ \t\n\r]*")


def members(text: str) -> dict[str, str]:
    """The raw JSON text of each member of the object that `text` is.

    Raises: `ValueError` when it is none, `RecursionError` when it is nested too deeply.
    """
    if not isinstance(_checked(text), dict):
        raise ValueError("no JSON object")  # noqa: TRY004 (callers catch what JSON raises)
    found: dict[str, str] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, at = _DECODER.raw_decode(text, start)
        found[key] = text[start:at]
        at = _next(text, at)
    return found


def items(text: str) -> list[str]:
    """The raw JSON text of each item of the array that `text` is. Raises: as `members`."""
    if not isinstance(_checked(text), list):
        raise ValueError("no JSON array")  # noqa: TRY004
    found: list[str] = []
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _next(text, end)
    return found


def _checked(text: str) -> object:
    return json.loads(text, parse_constant=_refuse)


def _skip(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()


def _next(text: str, at: int) -> int:
    """Past the comma after a part, if there is one."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder()
