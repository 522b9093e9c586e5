"""The length of a chain that is expected to pay most (TurboSpec, arXiv 2406.14066).

Tokens a step over the time of the step, both as expected: the chance of every depth from what was
tested there lately, the times from measurements.
"""

from __future__ import annotations

from typing import Final

from weft.decoding.speculative.budget.chances import Chances
from weft.decoding.speculative.budget.curve import Curve

_RAREST: Final = 16
"""Exploring that never succeeds gets rarer by up to this factor."""


class Goodput:
    """Implements `Lengths`: from 0, which is plain decoding, to as deep as `chances` go.

    `draft_cost` is what one drafted token takes, in passes of the target over one. A text that
    turns predictable is noticed: after `explore` steps without a draft half of the longest is
    asked for, until there is one; every time that it is all wrong, the next comes twice as late.
    """

    def __init__(
        self, curve: Curve, draft_cost: float, chances: Chances, *, explore: int = 32
    ) -> None:
        self._curve = curve
        self._draft_cost = draft_cost
        self._chances = chances
        self._explore = explore
        self._patience = explore
        self._idle = 0

    def length(self) -> int:
        """How many tokens to draft now. Depends on the past only, so the text keeps its law."""
        expected, best, most = 1.0, 0, 1.0
        for length, reached in enumerate(self._chances.reached(self._chances.depths), 1):
            expected += reached
            pays = expected / (length * self._draft_cost + self._curve(length + 1))
            if pays > most:
                best, most = length, pays
        if best == 0 and self._idle >= self._patience:
            return (self._chances.depths + 1) // 2
        return best

    def observe(self, drafted: int, accepted: int) -> None:
        """Of `drafted` tokens the first `accepted` were accepted; the one after them was tested."""
        self._chances.observe(drafted, accepted)
        if not drafted:
            self._idle += 1
            return
        if accepted:
            self._patience = self._explore
        elif self._idle >= self._patience:
            self._patience = min(2 * self._patience, _RAREST * self._explore)
        self._idle = 0
