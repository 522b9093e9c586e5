"""How many cases a study needs, so that its held-out cases can show something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, lgamma, log
from typing import Final

from weft.evaluation.case import SHARES
from weft.optimisation.decide import LEAST_CASES

_SURE: Final = 0.95
"""How probable it is that so many cases have enough held-out ones: splits are drawn by digests."""
_ROUND: Final = 10


def cases_for(held_out: int = LEAST_CASES, shares: Sequence[int] = SHARES) -> int | None:
    """Cases in all, in tens, of which at least `held_out` are held out with a probability of 95 %.

    For cases that are split by `shares`, each its own group. None: no share is held out.
    """
    share = shares[-1] / sum(shares)
    if share <= 0:
        return None
    if share >= 1:
        return _tens(held_out)
    low, high = held_out, max(1, held_out)
    while _at_least(held_out, high, share) < _SURE:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _at_least(held_out, middle, share) >= _SURE else (middle, high)
    return _tens(high)


def shortage(sizes: Mapping[str, int], shares: Sequence[int] = SHARES) -> str:
    """Why splits of these sizes cannot show anything, and what would; empty where they can."""
    found = sizes["held_out"]
    if found >= LEAST_CASES:
        return ""
    said = f"{found} held-out cases decide nothing: at least {LEAST_CASES} are needed"
    needed = cases_for(shares=shares)
    if needed is None:
        return f"{said}; give held_out a share"
    parts = "/".join(map(str, shares))
    return f"{said}, which about {needed:,} cases in all have, split {parts}"


def _at_least(least: int, cases: int, share: float) -> float:
    """The probability that of `cases` at least `least` have a property of this share."""
    fewer = (
        lgamma(cases + 1)
        - lgamma(count + 1)
        - lgamma(cases - count + 1)
        + count * log(share)
        + (cases - count) * log(1 - share)
        for count in range(min(least, cases + 1))
    )
    return 1 - sum(map(exp, fewer))


def _tens(count: int) -> int:
    return -(-count // _ROUND) * _ROUND
