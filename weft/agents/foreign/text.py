"""Texts that somebody else wrote, safe to show on a terminal and in a prompt of bounded length."""

from __future__ import annotations

from typing import Final

_KEPT: Final = "\n\t"


def shown(text: str, limit: int, *, lines: bool = False) -> str:
    """`text` without control characters, at most `limit` characters long.

    Line breaks stay only where `lines` asks for them.
    """
    clean = "".join(c if c.isprintable() or c in _KEPT else " " for c in text[: limit + 1])
    if not lines:
        clean = " ".join(clean.split())
    return clean if len(clean) <= limit else f"{clean[: limit - 3]}..."
