"""JSON objects as models write them: in code fences, with raw newlines, with talk around them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NoReturn

_ATTEMPTS: Final = 20


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


def object_with(keys: Collection[str], text: str) -> dict[str, Any] | None:
    """The first object in `text` that has one of `keys`, whatever stands around it; else None."""
    start = -1
    for _ in range(_ATTEMPTS):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            value, _end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if any(key in value for key in keys):
            return dict(value)
    return None
