"""Write together what provably hardly depends on each other; look again at what was doubtful.

Knows neither the task nor its length: what it may do follows from the predictions at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.certificate import gaps
from weft.decoding.diffusion.policies.shadows import expected, written
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats

_CERTAIN = 1e-4
"""Of a risk, what is due to rounding in float32."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Certified writing with a second look (ours).

    risk    of a window: the distances of its steps from one-by-one writing sum to no more
    care    a second look is due where tokens are wrong with this probability by the model's own
            word, as it was when they were written
    doubt   a token that all others leave less probability than this is opened again
    rounds  how many looks may open slots of a window
    """

    risk: float = 0.02
    care: float = 0.01
    doubt: float = 0.02
    rounds: int = 2
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Adapting:
        return _Adapting(self)

    def most_forwards(self, slots: int) -> int:
        # each round may open all slots again, which are then written one by one
        return (slots + 1) * (self.rounds + 1)


class _Adapting:
    def __init__(self, settings: Adaptive) -> None:
        self._settings = settings
        self._block = -1
        self._risk = self._owed = 0.0
        self._rounds = 0

    def shadows(self, canvas: Canvas) -> Slots:
        return written(canvas) if self._checks(canvas) else np.empty(0, dtype=np.int64)

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._rounds = canvas.block, self._settings.rounds
            self._risk, self._owed = self._settings.risk, 0.0
        if not stats.open.any():
            return self._second_look(stats, canvas)
        chosen = self._certified(stats)
        self._owed += float((1.0 - stats.confidence[chosen]).sum())
        full = chosen.sum() == stats.open.sum()
        return Action(
            commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]),
            again=bool(full) and self._wants_look,
        )

    @property
    def _wants_look(self) -> bool:
        return self._rounds > 0 and self._owed >= self._settings.care

    def _checks(self, canvas: Canvas) -> bool:
        return canvas.block == self._block and not len(canvas.open) and self._wants_look

    def _certified(self, stats: Stats) -> Bits:
        rows = np.flatnonzero(stats.open)
        doubt = 1.0 - stats.confidence[rows]
        order = np.argsort(doubt, kind="stable")
        bound = gaps(doubt[order], stats.entropy[rows][order])
        count = max(1, int(np.searchsorted(bound, self._risk, side="right")))
        self._risk -= float(bound[count - 1])
        chosen = np.zeros(len(stats.slots), dtype=np.bool_)
        chosen[rows[order[:count]]] = True
        return chosen

    def _second_look(self, stats: Stats, canvas: Canvas) -> Action:
        slots, p = expected(stats, canvas)
        doubted = slots[p < self._settings.doubt]
        self._rounds -= 1
        self._owed = 0.0
        # predictions that contradicted each other are not to be trusted together
        self._risk = min(self._risk, _CERTAIN)
        return Action(remask=doubted, again=len(doubted) > 0)
