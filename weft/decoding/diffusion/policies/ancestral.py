"""Reveal each slot by chance as time passes: the sampling that masked diffusion is derived from.

The only policy that lets predictions decide neither which slots are written nor how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.pace import Fading
from weft.decoding.diffusion.policies.ranking import at_step, commit
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Ancestral:
    """Dream's `origin`. Time falls evenly from 1 to `last`; from t to s each open slot is written
    with probability 1 - s/t, in the last of `steps` with certainty. Without `steps` there are as
    many as slots.

    A step in which chance writes none is passed over: the canvas would be predicted alike.
    """

    steps: int = 0
    last: float = 1e-3
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        Fading(self.steps, self.last)

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Revealing:
        return _Revealing(self)

    def most_forwards(self, slots: int) -> int:
        return min(self.steps or slots, slots)


class _Revealing:
    def __init__(self, settings: Ancestral) -> None:
        self._settings = settings
        self._shares: Iterator[tuple[int, float]] = iter(())
        self._passed = 0

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        rows = np.flatnonzero(stats.open)
        if canvas.step_in_block == 0:
            shares = Fading(self._settings.steps, self._settings.last).shares(len(rows))
            self._shares = enumerate(shares, self._passed)
            self._passed += len(shares)
        for step, share in self._shares:
            at = at_step(step)
            slots = stats.slots[rows] - canvas.first
            shown = [drawn.chance.accepts(share, at + int(slot), 0) for slot in slots]
            if any(shown):
                return commit(stats, drawn, rows[shown])
        return commit(stats, drawn, rows)
