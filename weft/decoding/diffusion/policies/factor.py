"""Commit as many slots as can be sure together, by their least sure one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import commit, ranked, score_of
from weft.decoding.diffusion.policies.threshold import SLACK, By
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Factor:
    """Fast-dLLM's factor rule (Wu et al. 2025): the n surest slots, for the largest n with
    (n + 1) (1 - confidence of the nth) < `factor`; at least one.

    If each of n slots has a token with probability above 1 - e, and (n + 1) e <= 1, these tokens
    are the likeliest together too: at most 1 never errs where tokens are taken greedily and
    predictions are true. Larger factors are guesses. `by`: see `Threshold`.
    """

    factor: float = 1.0
    by: By = "drawn"
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < np.inf:
            raise ValueError(f"a factor of {self.factor}")

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Together:
        return _Together(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Together:
    def __init__(self, settings: Factor) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, _canvas: Canvas) -> Action:
        rules = self._settings
        score = score_of(rules.by, stats, drawn)
        rows = ranked(score, stats.open)
        # with the slack, rounding does not let through what stands at the border
        doubt = (np.arange(len(rows)) + 2) * (1.0 - score[rows] + SLACK)
        certified = int((doubt < rules.factor).sum())
        return commit(stats, drawn, rows[: max(1, certified)])
