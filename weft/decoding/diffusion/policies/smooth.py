"""Read undecided slots as a little of what they were predicted to be (iteration smoothing).

Knows no model; one that was not trained on mixtures takes small weights only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.policies.ranking import surest
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policies.uniform_state import mixture
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.query import Soft
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Smooth:
    """dInfer's IterSmooth (Ma et al. 2025), with a threshold.

    Slots whose confidence reaches a threshold are written, the surest at least; it falls from 1
    by `fall` at each pass of a window, down to `threshold`. Open slots are read as the mask and,
    with a weight that rises from `weight` by `rise` up to `most`, the `parts` likeliest tokens of
    the last prediction.
    """

    threshold: float = 0.9
    fall: float = 0.02
    weight: float = 0.15
    rise: float = 0.02
    most: float = 0.3
    parts: int = 8
    needs: frozenset[Need] = frozenset({"distribution"})

    def begin(self, _canvas: Canvas, traits: Traits) -> _Smoothing:
        return _Smoothing(self, traits.mask_id)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Smoothing:
    def __init__(self, settings: Smooth, mask_id: int | None) -> None:
        self._settings, self._mask = settings, mask_id

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        rules, passes = self._settings, canvas.step_in_block
        threshold = max(rules.threshold, 1.0 - rules.fall * passes)
        chosen = stats.open & reaches(stats.confidence, threshold)
        chosen |= surest(stats, 1)
        weight = min(rules.most, rules.weight + rules.rise * passes)
        return Action(
            commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]),
            soft=self._soft(stats, chosen, weight),
        )

    def _soft(self, stats: Stats, chosen: Bits, weight: float) -> Soft | None:
        if self._mask is None:
            return None
        soft = mixture(stats, self._settings.parts)
        left = ~chosen[stats.open]
        ids, weights = soft.ids[left], weight * soft.weights[left]
        masks = np.full((len(ids), 1), self._mask, dtype=np.int64)
        rest = np.full((len(ids), 1), 1.0 - weight)
        return Soft(soft.slots[left], np.hstack([masks, ids]), np.hstack([rest, weights]))
