"""Adaptive commits: nearly independent slots together, the rest one by one, with a second look.

The certificates follow from the predictions at hand; they hold for a model whose predictions are
consistent with each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policies.ranking import Rows, rank_rows
from weft.decoding.diffusion.policies.remasking import shadow_probabilities
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SLACK, SampledTokens, Stats, reaches


def variation_bounds(
    doubt: NDArray[np.float64], entropy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bounds for the first 1, 2, .. of some slots: [slots], ascending from 0.

    `doubt` is 1 minus the probability of the likeliest token, `entropy` is in nats. Each bounds the
    total variation distance between the joint distribution of such a set and the product of its
    marginals. It is the smallest of three:

    - the sum of the doubts: joint and product both give the likeliest tokens at least 1 minus it;
    - twice that sum without its largest term: given the likeliest tokens of the others, both differ
      from that slot's own distribution by no more than the others' doubts;
    - Pinsker's, of the relative entropy, which is at most the entropies' sum without the largest
      (entropy-bounded unmasking, Ben-Hamu et al. 2025).
    """
    union, excess = doubt.cumsum(), entropy.cumsum() - np.maximum.accumulate(entropy)
    without = union - np.maximum.accumulate(doubt)
    pinsker = np.sqrt(np.maximum(excess, 0.0) / 2.0)
    bound: NDArray[np.float64] = np.minimum(np.minimum(union, 2.0 * without), pinsker)
    return np.maximum.accumulate(np.maximum(bound, 0.0))


_ROUNDING: Final = 1e-4
"""The part of a risk that is due to float32."""


@dataclass(frozen=True, slots=True)
class AdaptivePolicy:
    """Certified commits with a second look (weft's own).

    A pass writes the surest slots, as many as a certificate covers (`variation_bounds`), if these
    are two or more; else the leftmost slot alone, as one-by-one writing does. Once the window is
    full, the certified slots are predicted from all the others, if there is enough doubt, and those
    that the others contradict are opened again.

    risk    of a window: the sum of the certified distances of its passes. A slot is sure when its
            likeliest token is wrong with at most the risk that is left
    care    the sum of the probabilities, when written, that certified tokens are wrong, from which
            a second look is due
    doubt   a certified token to which all the others give less probability is opened again, after
            which the window has no risk left
    rounds  second looks at a window

    Guaranteed, for a model whose predictions are marginals of one joint distribution:
    without looks, texts drawn at temperature 1 without cuts differ from those of one-by-one writing
    by a total variation of at most `risk` a window; greedily, certified tokens are those of
    one-by-one writing in the same order, as long as `risk` is below .3. For any model: every pass
    writes a slot, and a window takes no more passes than slots, plus, for each look, one and as
    many as it opened.

    Not guaranteed: anything for a model whose predictions contradict each other, which trained
    ones do a little; there a look finds single tokens that do not fit, but not two that are wrong
    together and agree. A look that opens a slot changes the sampled distribution, in favour of
    texts that fit together.
    """

    risk: float = 0.05
    care: float = 0.05
    doubt: float = 0.5
    rounds: int = 2
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _AdaptiveSession:
        return _AdaptiveSession(self)

    def most_forwards(self, slots: int) -> int:
        # each round may open all slots again, which are then written one by one
        return (slots + 1) * (self.rounds + 1)


class _AdaptiveSession:
    def __init__(self, settings: AdaptivePolicy) -> None:
        self._settings = settings
        self._block = -1
        self._risk = self._expected_errors = 0.0
        self._rounds = 0
        self._certified: list[int] = []

    def shadows(self, canvas: Canvas) -> Slots:
        """The certified slots, once all are written and a second look is due."""
        due = canvas.block == self._block and not len(canvas.open) and self._look_due
        return np.array(sorted(self._certified) if due else [], dtype=np.int64)

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._rounds = canvas.block, self._settings.rounds
            self._risk, self._expected_errors, self._certified = self._settings.risk, 0.0, []
        if not stats.open.any():
            return self._second_look(stats, canvas)
        rows, sure = self._chosen(stats)
        self._certified += [int(slot) for slot in stats.slots[sure]]
        self._expected_errors += float((1.0 - drawn.p[sure]).sum())
        return Action(
            commit=SlotTokens.of(stats.slots[rows], drawn.ids[rows]),
            again=len(rows) == int(stats.open.sum()) and self._look_due,
        )

    @property
    def _look_due(self) -> bool:
        return self._rounds > 0 and self._expected_errors >= self._settings.care

    def _chosen(self, stats: Stats) -> tuple[Rows, Rows]:
        """The rows that are written now, and the certified ones among them."""
        rows = rank_rows(stats.confidence, stats.open)
        doubt = np.maximum(1.0 - stats.confidence[rows], 0.0)
        sure = int((doubt <= self._risk + SLACK).sum())
        bound = variation_bounds(doubt[:sure], stats.entropy[rows[:sure]])
        count = int(np.searchsorted(bound, self._risk + SLACK, side="right"))
        if count < 2:  # no gain: write as one-by-one decoding would
            return rows[[rows.argmin()]], rows[:0]
        self._risk = max(0.0, self._risk - float(bound[count - 1]))
        return rows[:count], rows[:count]

    def _second_look(self, stats: Stats, canvas: Canvas) -> Action:
        slots, p = shadow_probabilities(stats, canvas)
        doubted = slots[~reaches(p, self._settings.doubt)]
        self._rounds -= 1
        self._expected_errors, self._certified = 0.0, []
        # contradictory predictions are not trusted together again
        self._risk = min(self._risk, _ROUNDING)
        return Action(remask=doubted, again=len(doubted) > 0)
