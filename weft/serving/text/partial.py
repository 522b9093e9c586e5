"""How much of a text's end may be the beginning of something."""

from __future__ import annotations

from collections.abc import Iterable


def partial(text: str, literals: Iterable[str]) -> int:
    """Length of the longest end of `text` that begins one of `literals` without being all of it."""
    return max((_partial(text, literal) for literal in literals), default=0)


def _partial(text: str, literal: str) -> int:
    longest = min(len(text), len(literal) - 1)
    return next((n for n in range(longest, 0, -1) if literal.startswith(text[-n:])), 0)
