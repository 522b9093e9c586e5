"""Commit slots that stand apart, and then those between them. Blind to predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import commit
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Dilated:
    """Dilated unmasking (Luxembourg et al. 2025): in a window of w slots every (w / base)th slot,
    then every (w / base^2)th, and so on to all: about log w steps.
    """

    base: int = 2
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if self.base < 2:
            raise ValueError(f"gaps cannot shrink by {self.base}")

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Apart:
        return _Apart(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Apart:
    def __init__(self, settings: Dilated) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        """Those of the widest gap at which a slot is open."""
        place = stats.slots - canvas.window.start
        gap = len(canvas.window)
        chosen = np.zeros(len(place), dtype=np.bool_)
        while gap > 1 and not chosen.any():
            gap = max(1, gap // self._settings.base)
            chosen = stats.open & (place % gap == 0)
        return commit(stats, drawn, chosen if chosen.any() else stats.open)
