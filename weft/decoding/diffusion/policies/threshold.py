"""Commit every slot whose confidence reaches a threshold. Blind to how many pass together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.policies.pace import Every, Pace, Pacing
from weft.decoding.diffusion.policies.ranking import commit, ranked, score_of
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats

By = Literal["confidence", "drawn"]
SLACK: Final = 1e-6
"""Probabilities from float32 logits differ by less where they are equal: one half may read
0.49999997 on one machine and 0.5 on the next."""


def reaches(values: NDArray[np.float64], threshold: float) -> Bits:
    """Where `values` are at least the threshold, within rounding."""
    reached: Bits = values >= threshold - SLACK
    return reached


@dataclass(frozen=True, slots=True)
class Threshold:
    """Fast-dLLM (Wu et al. 2025); with a pace, Dimple's confident decoding (Yu et al. 2025) and
    SDAR's dynamic one.

    Where no slot reaches the threshold, the surest are written: as many as the pace says. `filled`:
    also where some do, but fewer.

    by  `drawn`, as published: a slot that drew something unlikely waits, so that texts are valid
        more often and no fair sample; `confidence`: the likeliest token counts, whatever is drawn.
        Alike where tokens are taken greedily
    """

    threshold: float = 0.9
    by: By = "drawn"
    pace: Pace = field(default_factory=Every)
    filled: bool = False
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"a threshold of {self.threshold}")

    def begin(self, canvas: Canvas, _traits: Traits) -> _Sure:
        return _Sure(self, canvas)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Sure:
    def __init__(self, settings: Threshold, canvas: Canvas) -> None:
        self._settings = settings
        self._pacing: Pacing = settings.pace.begin(len(canvas.open))

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        rules = self._settings
        left = int(stats.open.sum())
        if canvas.step_in_block == 0:
            self._pacing = rules.pace.begin(left)
        due = self._pacing.due(left)
        score = score_of(rules.by, stats, drawn)
        rows = ranked(score, stats.open)
        sure = int(reaches(score[rows], rules.threshold).sum())
        if not sure or (rules.filled and sure < due):
            sure = due
        return commit(stats, drawn, rows[:sure])
