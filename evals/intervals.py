"""How sure a share and a difference of two shares are, with 95 %. Knows no system."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, pstdev
from typing import Final

_Z: Final = 1.959964


def share_interval(right: Sequence[bool]) -> tuple[float, float]:
    """Wilson's interval of the share of True in `right`, which is not empty."""
    number, share = len(right), mean(right)
    centre = share + _Z**2 / (2 * number)
    half = _Z * sqrt(share * (1 - share) / number + _Z**2 / (4 * number**2))
    whole = 1 + _Z**2 / number
    return max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole)


def paired_difference(one: Sequence[bool], other: Sequence[bool]) -> tuple[float, float, float]:
    """By how much `one` is right more often on the same items: the difference, low and high.

    Normal, over the differences item by item. Raises: `ValueError` when the items are not as many.
    """
    differences = [int(a) - int(b) for a, b in zip(one, other, strict=True)]
    centre = mean(differences)
    half = _Z * pstdev(differences) / sqrt(len(differences))
    return centre, centre - half, centre + half
