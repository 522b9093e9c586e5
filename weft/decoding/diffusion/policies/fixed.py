"""Commit as many slots as a pace says, the best by a score. Blind to how sure they are together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.pace import Every, Pace, Pacing
from weft.decoding.diffusion.policies.ranking import Score, commit, picked, ranked, score_of
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Fixed:
    """LLaDA (Nie et al. 2025) with `Split`, Dream (Ye et al. 2025) with `Fading`; one slot a step
    with `Every(1)`.

    spread     above 0: slots are drawn with weights exp(score / spread), Dream's `alg_temp`
    ends_last  slots that drew a terminator come after all others
    """

    pace: Pace = field(default_factory=Every)
    score: Score = "confidence"
    spread: float = 0.0
    ends_last: bool = False
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.spread < np.inf:
            raise ValueError(f"a spread of {self.spread}")

    def begin(self, canvas: Canvas, traits: Traits) -> _Paced:
        return _Paced(self, canvas, traits)

    def most_forwards(self, slots: int) -> int:
        return self.pace.most_forwards(slots)


class _Paced:
    def __init__(self, settings: Fixed, canvas: Canvas, traits: Traits) -> None:
        self._settings = settings
        self._ends = sorted(traits.end_ids)
        self._pacing: Pacing = settings.pace.begin(len(canvas.open))

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        rules = self._settings
        left = int(stats.open.sum())
        if canvas.step_in_block == 0:
            self._pacing = rules.pace.begin(left)
        due = self._pacing.due(left)
        score = score_of(rules.score, stats, drawn)
        if rules.ends_last:
            # all scores of words stay above, in their order
            late = np.isin(drawn.ids, self._ends)
            score = np.where(late, score - 2.0 * (1.0 + np.abs(score).max()), score)
        if rules.score == "random" or rules.spread:
            spread = rules.spread or 1.0
            rows = picked(score, stats.open, due, spread, drawn.chance, canvas.step)
        else:
            rows = ranked(score, stats.open)[:due]
        return commit(stats, drawn, rows)
