"""How much a text repeats itself: greedy small models loop, and a loop is easy to draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

LOOPS: Final = 0.1
"""A text with a larger share of its tokens in repeated runs counts as one that loops."""


def distinct(tokens: Sequence[int], length: int = 3) -> float:
    """Different runs of `length` tokens, as a share of all of them; 1 where there are none."""
    runs = _runs(tokens, length)
    return len(set(runs)) / len(runs) if runs else 1.0


def repeated(tokens: Sequence[int], length: int = 8) -> float:
    """The share of the tokens that stand in a run of `length` which occurs more than once."""
    runs = _runs(tokens, length)
    often = {run for run, count in Counter(runs).items() if count > 1}
    inside = {at + i for at, run in enumerate(runs) if run in often for i in range(length)}
    return len(inside) / len(tokens) if tokens else 0.0


def _runs(tokens: Sequence[int], length: int) -> list[tuple[int, ...]]:
    return [tuple(tokens[at : at + length]) for at in range(len(tokens) - length + 1)]
