"""Spearman's rank correlation. Knows no metric."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import correlation


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each value in ascending order, from 1; equal ones share their mean place."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) + 1) / 2 for v in values]


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's correlation of the ranks, from -1 to 1; 0 where all values of a side are equal."""
    a, b = ranks(one), ranks(other)
    if len(set(a)) == 1 or len(set(b)) == 1:
        return 0.0
    return correlation(a, b)
