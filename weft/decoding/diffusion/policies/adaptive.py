"""Together what provably hardly depends on each other, the rest one by one, and a look back.

Knows neither the task nor its length: what it may do follows from the predictions at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policies.certificate import gaps
from weft.decoding.diffusion.policies.ranking import Rows, ranked
from weft.decoding.diffusion.policies.shadows import expected
from weft.decoding.diffusion.policies.threshold import SLACK, reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats

_ROUNDING: Final = 1e-4
"""Of a risk, what is due to float32."""


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Certified writing with a second look (ours).

    A pass writes the surest slots, as many as a certificate covers (`gaps`), if these are two or
    more; else the leftmost slot alone, as one-by-one writing does. Once the window is full, the
    certified slots are predicted from all the others, where there is something to doubt, and those
    that the others contradict are opened again.

    risk    of a window: the certified distances of its passes sum to no more. A slot is sure when
            its likeliest token is wrong with no more than what is left of it
    care    a second look is due where certified tokens are wrong with this probability, summed,
            by the model's own word when they were written
    doubt   a certified token that all the others leave less probability than this is opened again,
            after which what is left of the risk is taken away
    rounds  how many looks a window gets

    Guaranteed, for a model whose predictions are those of one joint law, as true marginals are:
    without looks, texts drawn at temperature 1 without cuts differ from those of one-by-one writing
    by a total variation of at most `risk` a window; greedily, certified tokens are those of
    one-by-one writing in the same order, as long as `risk` is below .3. For any model: every pass
    writes a slot, and a window takes no more passes than slots, plus, for each look, one and as
    many as it opened.

    Not guaranteed: anything for a model whose predictions contradict each other, which trained
    ones do a little; there a look finds single tokens that do not fit, but not two that are wrong
    together and agree. A look that opens a slot leaves the law that is sampled from, for the sake
    of texts that fit together.
    """

    risk: float = 0.05
    care: float = 0.05
    doubt: float = 0.5
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
        self._certified: list[int] = []

    def shadows(self, canvas: Canvas) -> Slots:
        """The certified slots, when all are written and they are worth it."""
        due = canvas.block == self._block and not len(canvas.open) and self._look_due
        return np.array(sorted(self._certified) if due else [], dtype=np.int64)

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._rounds = canvas.block, self._settings.rounds
            self._risk, self._owed, self._certified = self._settings.risk, 0.0, []
        if not stats.open.any():
            return self._second_look(stats, canvas)
        rows, sure = self._chosen(stats)
        self._certified += [int(slot) for slot in stats.slots[sure]]
        self._owed += float((1.0 - drawn.p[sure]).sum())
        return Action(
            commit=Writing.of(stats.slots[rows], drawn.ids[rows]),
            again=len(rows) == int(stats.open.sum()) and self._look_due,
        )

    @property
    def _look_due(self) -> bool:
        return self._rounds > 0 and self._owed >= self._settings.care

    def _chosen(self, stats: Stats) -> tuple[Rows, Rows]:
        """What is written now, and which of it on the word of a certificate."""
        rows = ranked(stats.confidence, stats.open)
        doubt = np.maximum(1.0 - stats.confidence[rows], 0.0)
        sure = int((doubt <= self._risk + SLACK).sum())
        bound = gaps(doubt[:sure], stats.entropy[rows[:sure]])
        count = int(np.searchsorted(bound, self._risk + SLACK, side="right"))
        if count < 2:  # nothing is gained: then as one-by-one writing would
            return rows[[rows.argmin()]], rows[:0]
        self._risk = max(0.0, self._risk - float(bound[count - 1]))
        return rows[:count], rows[:count]

    def _second_look(self, stats: Stats, canvas: Canvas) -> Action:
        slots, p = expected(stats, canvas)
        doubted = slots[~reaches(p, self._settings.doubt)]
        self._rounds -= 1
        self._owed, self._certified = 0.0, []
        # predictions that contradict each other are not to be trusted together again
        self._risk = min(self._risk, _ROUNDING)
        return Action(remask=doubted, again=len(doubted) > 0)
