"""JSON as models write it: in code fences, with raw newlines, with talk around it. Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NoReturn

from weft.core.errors import ModelOutputError
from weft.core.generated_text import unfenced

_ATTEMPTS: Final = 20


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


def decoded(text: str, what: str) -> Any:
    """The value that `text` spells, in a code fence or not.

    Raises: `ModelOutputError`, which calls it `what`.
    """
    try:
        return _DECODER.decode(unfenced(text).strip())
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"{what} is not JSON: {error}") from None


def first_json(text: str) -> Any:
    """The value that `text` begins with. A model may go on with a result that it made up.

    Raises: `ModelOutputError`, also when another object follows.
    """
    plain = text.strip().removeprefix("```json").removeprefix("```").strip()
    try:
        value, end = _DECODER.raw_decode(plain)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"a call is not JSON: {error}") from None
    if plain[end:].lstrip(" \n,").startswith("{"):
        raise ModelOutputError("each call needs a line of its own that begins with `Call:`")
    return value


def object_with(keys: Collection[str], text: str) -> dict[str, Any] | None:
    """The first object in `text` that has one of `keys`, whatever stands around it."""
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
