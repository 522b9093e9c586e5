"""Medians with how sure they are. Knows no system."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import Final

_RESAMPLES: Final = 2000


def interval(samples: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Within which the median lies with 95%: the bootstrap over `samples`, at least one."""
    draw = random.Random(seed)
    found = sorted(median(draw.choices(samples, k=len(samples))) for _ in range(_RESAMPLES))
    return found[round(0.025 * (_RESAMPLES - 1))], found[round(0.975 * (_RESAMPLES - 1))]
