"""Lengths for all sequences of a method: a new one begins with what the others showed."""

from __future__ import annotations

from typing import Final

from weft.decoding.speculative.budget.chances import Chances, Counts
from weft.decoding.speculative.budget.curve import Curve
from weft.decoding.speculative.budget.goodput import Goodput

_HOPE: Final = 0.6
"""Of a drafter that nobody has seen: it was asked for by name, so it gets a chance to show."""


class Pace:
    """Chains of up to `longest` tokens, each of which takes `draft_cost` passes of the target.

    One a method, used from one thread.
    """

    def __init__(self, curve: Curve, draft_cost: float, longest: int) -> None:
        self._history = Counts(longest, memory=512.0)
        self._longest = longest
        self._curve = curve
        self._draft_cost = draft_cost

    def lengths(self) -> Goodput:
        """For one sequence; what it shows is remembered for the next."""
        own = Counts(self._longest, memory=32.0)
        return Goodput(self._curve, self._draft_cost, Chances((self._history, own), _HOPE))
