"""A value of any kind as text, a piece at a time, so that the beginning of a huge one is cheap."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from weft.core.events import jsonable

_ENCODER: Final = json.JSONEncoder(default=jsonable, ensure_ascii=False, indent=2)
_PIECE_CHARS: Final = 1 << 16
_MARKED_CHARS: Final = 1 << 24


def pieces(value: object) -> Iterator[str]:
    """Text as it is, anything else as JSON; what JSON cannot hold ends with a remark instead."""
    if isinstance(value, str):
        yield from (value[at : at + _PIECE_CHARS] for at in range(0, len(value), _PIECE_CHARS))
        return
    try:
        yield from _ENCODER.iterencode(value)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"\n(the rest cannot be shown: {type(error).__name__})"


def beginning(value: object, most: int) -> tuple[str, bool]:
    """At most `most` characters of the text of `value`, and whether that is not all of it."""
    found: list[str] = []
    length = 0
    for piece in pieces(value):
        found.append(piece[: most + 1 - length])
        length += len(found[-1])
        if length > most:
            break
    text = "".join(found)
    return text[:most], len(text) > most


def mark(value: object) -> str:
    """A text that is the same for the same value; empty for one too long to look through."""
    digest = hashlib.sha256(type(value).__name__.encode())
    length = 0
    for piece in pieces(value):
        length += len(piece)
        if length > _MARKED_CHARS:
            return ""
        digest.update(encodable(piece))
    return digest.hexdigest()[:32]


def encodable(text: str) -> bytes:
    """`text` in UTF-8; half of a surrogate pair, which has no encoding, becomes a question mark."""
    return text.encode("utf-8", "replace")
