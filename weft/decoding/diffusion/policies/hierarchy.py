"""Commit far apart: the best slot of each gap between decided ones (hierarchical decoding).

Knows no model: that slots far apart depend less on each other is its bet, not a fact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import surest
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """dInfer's hierarchical decoder (Ma et al. 2025).

    Written are: all slots whose confidence reaches `high`; of each run of neighbouring open slots
    the surest, if it reaches `low`; and the surest of all.
    """

    high: float = 0.9
    low: float = 0.4
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Gaps:
        return _Gaps(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Gaps:
    def __init__(self, settings: Hierarchy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, _canvas: Canvas) -> Action:
        rules = self._settings
        chosen = stats.open & reaches(stats.confidence, rules.high)
        fair = reaches(stats.confidence, rules.low)
        rows = np.flatnonzero(stats.open)
        # a new run begins where a slot does not follow the one before it
        for run in np.split(rows, np.flatnonzero(np.diff(stats.slots[rows]) > 1) + 1):
            if len(run):
                best = run[stats.confidence[run].argmax()]
                chosen[best] |= fair[best]
        chosen |= surest(stats, 1)
        return Action(commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]))
