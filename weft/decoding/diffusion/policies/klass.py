"""Commit what is sure and has stopped changing (KLASS).

Knows nothing of the schedule: where nothing is stable, the surest slots are written.
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
class Klass:
    """Token-level KL-adaptive stability sampling (Kim et al. 2025).

    A slot is written when its confidence reaches `confidence` and the prediction moved by less
    than `divergence` nats of KL(now, before) in each of the last `history` passes. Where no slot
    is, the `least` surest are.
    """

    confidence: float = 0.6
    divergence: float = 0.015
    history: int = 2
    least: int = 1
    needs: frozenset[Need] = frozenset({"distribution"})

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Stable:
        return _Stable(self)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.least)


class _Stable:
    def __init__(self, settings: Klass) -> None:
        self._settings = settings
        self._calm: dict[int, int] = {}

    def propose(self, stats: Stats, drawn: Drawn, _canvas: Canvas) -> Action:
        rules = self._settings
        calm = np.where(np.isnan(stats.kl), False, stats.kl < rules.divergence)
        # how many passes in a row each slot has been calm; a slot not seen now starts anew
        self._calm = {
            int(slot): self._calm.get(int(slot), 0) + 1 for slot in stats.slots[calm & stats.open]
        }
        lasting = np.array([self._calm.get(int(s), 0) >= rules.history for s in stats.slots])
        chosen = stats.open & lasting & reaches(stats.confidence, rules.confidence)
        if not chosen.any():
            chosen = surest(stats, rules.least)
        return Action(commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]))
