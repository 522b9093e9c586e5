"""JSON objects as models write them: in code fences, with raw newlines, with talk around them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final, NoReturn

_ATTEMPTS: Final = 20


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


_MEMBER: Final = re.compile(
    r'"(\w{1,40})"\s*:\s*(?:"((?:[^"\\]|\\.)*)("|\\?\Z)|(-?\d+(?:\.\d+)?))', re.DOTALL
)
"""A member whose value is a text, perhaps without an end, or a number."""


def object_with(keys: Collection[str], text: str) -> dict[str, Any] | None:
    """The first object in `text` that has one of `keys`, whatever stands around it; else None.

    Of one that was cut off, the texts and numbers that were written.
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
    """The texts and numbers of the object that `text` begins with and that has no end."""
    if not text.strip().removeprefix("```json").removeprefix("```").lstrip().startswith("{"):
        return {}
    members: dict[str, Any] = {}
    for key, said, _, number in _MEMBER.findall(text):
        try:
            members.setdefault(key, _DECODER.decode(number or f'"{said}"'))
        except ValueError:
            members.setdefault(key, said)
    return members
