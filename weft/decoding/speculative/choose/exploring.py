"""When a drafter that has to be paid for may be tried out, so that trying never costs much.

The optimism of upper confidence bounds (Auer et al., 2002), under a budget: all that was spent on
trying stays below a share of the time that has passed.
"""

from __future__ import annotations

import math
from typing import Final

_MOST_SAVED: Final = 20.0


class Exploring:
    """`share` of all time, counted in passes of the target, may be spent on drafts that do not pay.

    Begins with nothing, so the share holds from the first step on.
    """

    def __init__(self, share: float = 0.01) -> None:
        self._share = share
        self._saved = 0.0
        self._steps = 0

    def passed(self, passes: float = 1.0) -> None:
        """A step of one sequence that took about so long."""
        self._steps += 1
        self._saved = min(self._saved + self._share * passes, _MOST_SAVED)

    def bonus(self, tested: float) -> float:
        """How much better than its mean the chance of a drafter may be, after so many tests."""
        return math.sqrt(math.log(1.0 + self._steps) / (2.0 * (tested + 1.0)))

    def affords(self, passes: float) -> bool:
        """Whether that can be spent now."""
        return passes <= self._saved

    def spend(self, passes: float) -> None:
        """What a trial has taken, be it more than was thought: the next comes later then."""
        self._saved -= passes
