"""Open written slots again by chance, the doubtful ones more often (remasking diffusion).

Knows no model. What is opened is made up for in the same pass, so that it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policies.ranking import at_step, surest
from weft.decoding.diffusion.policies.shadows import written
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats
from weft.decoding.speculative.chance import Chance


@dataclass(frozen=True, slots=True)
class Remdm:
    """ReMDM with confidence-based rates (Wang et al. 2025).

    After the pass s of a window, s times `step` slots are decided. At each pass a written slot is
    opened again with a probability of `rate` times the softmax of -psi over the written ones,
    psi being its probability when it was written; at most `budget` times in a window.
    """

    step: int = 1
    rate: float = 0.2
    budget: int = 32
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Reopening:
        return _Reopening(self)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.step)


class _Reopening:
    def __init__(self, settings: Remdm) -> None:
        self._settings = settings
        self._block, self._left = -1, 0
        self._psi: dict[int, float] = {}

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._left, self._psi = canvas.block, self._settings.budget, {}
        decided = written(canvas)
        due = self._settings.step * (canvas.step_in_block + 1) - len(decided)
        # each opened slot has to be made up for by an open one that is written now
        most = min(self._left, int(stats.open.sum()) - due)
        again = self._opened(decided, canvas, drawn.chance)[: max(0, most)]
        self._left -= len(again)
        chosen = surest(stats, due + len(again))
        for slot, p in zip(stats.slots[chosen], drawn.p[chosen], strict=True):
            self._psi[int(slot)] = float(p)
        return Action(
            commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]), remask=np.sort(again)
        )

    def _opened(self, decided: Slots, canvas: Canvas, chance: Chance) -> Slots:
        if not len(decided):
            return decided
        weights = np.exp([-self._psi.get(int(slot), 1.0) for slot in decided])
        rates = self._settings.rate * weights / weights.sum()
        hit = [
            chance.accepts(float(rate), at_step(canvas.step) + int(slot) - canvas.first, 0)
            for slot, rate in zip(decided, rates, strict=True)
        ]
        opened: Slots = decided[np.array(hit)]
        return opened
