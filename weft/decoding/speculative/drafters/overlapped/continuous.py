"""Continuous speculation (PipeInfer, arXiv 2407.11798): more picky the further ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.decoding.speculative.drafters.model.choice import Chosen


@dataclass(frozen=True, slots=True)
class Cutoff:
    """How probable a drafted token must be to its model, that drafting goes on after it.

    `accept` for the first batch of tokens, `recovery` more for each that is ahead of the text, and
    `decay` less for each miss in a row. At 1 or more nothing is drafted any more.
    """

    accept: float = 0.001
    recovery: float = 0.4
    decay: float = 0.01

    def __call__(self, batches: int, misses: int) -> float:
        return max(0.0, self.accept + batches * self.recovery - misses * self.decay)


class Continuous:
    """Implements `Pacing`: the target waits for no draft, and the draft ends only by the cut-off.

    A round ends with the target's pass; what was drafted until then is proposed. Where that is
    nothing, the target reads the newest token alone. A miss ends the round's draft at once.
    """

    waits = False

    def __init__(self, cutoff: Cutoff, batch: int, longest: int) -> None:
        self._cutoff = cutoff
        self._batch = batch
        self._longest = longest

    def most(self, _gamma: int) -> int:
        return self._longest

    def goes_on(self, ahead: int, chosen: Sequence[Chosen], misses: int) -> bool:
        least = self._cutoff((ahead + len(chosen)) // self._batch, misses)
        return least < 1.0 and (not chosen or chosen[-1].confidence >= least)
