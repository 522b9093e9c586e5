"""Credit for tokens that stay likeliest, so that they need not be predicted so often.

Knows no rule for committing: it raises logits, and another policy reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policy import CommitPolicy, Commits, Need
from weft.decoding.diffusion.stats import Drawn, Stats, log_probabilities

_SPENT = 1e-3


@dataclass(frozen=True, slots=True)
class Credit:
    """CreditDecoding (Wang et al. 2025), before `then`, which commits.

    At every pass the credit of each (slot, token) is multiplied by `decay`, and the likeliest
    token of a slot earns p to the power of `power`. Its logit rises by `weight` ln(1 + credit).
    A slot that was opened again starts without credit.
    """

    then: CommitPolicy
    weight: float = 0.65
    decay: float = 0.8
    power: float = 0.2

    @property
    def needs(self) -> frozenset[Need]:
        return self.then.needs

    def begin(self, canvas: Canvas, traits: Traits) -> _Credited:
        return _Credited(self, self.then.begin(canvas, traits))

    def most_forwards(self, slots: int) -> int:
        return self.then.most_forwards(slots)


class _Credited:
    def __init__(self, settings: Credit, then: Commits) -> None:
        self._settings, self._then = settings, then
        self._earned: dict[tuple[int, int], dict[int, float]] = {}

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        raised = logits.copy()
        for row in np.flatnonzero(canvas.undecided[slots]):
            slot = int(slots[row])
            earned = self._earn((slot, int(canvas.visits[slot])), logits[row])
            for token, credit in earned.items():
                raised[row, token] += self._settings.weight * np.log1p(credit)
        return raised

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        return self._then.propose(stats, drawn, canvas)

    def _earn(self, key: tuple[int, int], logits: NDArray[np.float32]) -> dict[int, float]:
        """The credits of a slot after this pass."""
        rules = self._settings
        earned = {
            token: credit * rules.decay
            for token, credit in self._earned.get(key, {}).items()
            if credit * rules.decay > _SPENT
        }
        likeliest = int(logits.argmax())
        p = float(np.exp(log_probabilities(logits)[likeliest]))
        earned[likeliest] = earned.get(likeliest, 0.0) + p**rules.power
        self._earned[key] = earned
        return earned
