"""Precision and recall of things that may occur several times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable


def f1(found: Iterable[Hashable], gold: Iterable[Hashable]) -> float:
    """The F1 of two multisets; 1 where both are empty."""
    mine, theirs = Counter(found), Counter(gold)
    size = mine.total() + theirs.total()
    return 2 * (mine & theirs).total() / size if size else 1.0
