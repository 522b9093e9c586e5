"""The surest open slots. Knows no rule for how many there should be."""

from __future__ import annotations

import numpy as np

from weft.decoding.diffusion.canvas import Bits
from weft.decoding.diffusion.stats import Stats


def surest(stats: Stats, count: int) -> Bits:
    """[slots]: the `count` open ones of the highest confidence, the leftmost of equals first."""
    chosen = np.zeros(len(stats.slots), dtype=np.bool_)
    score = np.where(stats.open, stats.confidence, -1.0)
    order = np.argsort(-score, kind="stable")[: min(count, int(stats.open.sum()))]
    chosen[order] = True
    return chosen
