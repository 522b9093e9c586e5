"""Commit every slot that a trained filter takes for final."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.finality import Finality
from weft.decoding.diffusion.policies.ranking import commit, ranked
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Learned:
    """Learn2PD (Bao et al., arXiv 2509.25188): slots whose verdict is above `threshold`, and the
    surest one. Of a window that is longer than the filter, only the first slots are judged.
    """

    finality: Finality
    threshold: float = 0.9
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"a threshold of {self.threshold}")

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Judged:
        return _Judged(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Judged:
    def __init__(self, settings: Learned) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        finality = self._settings.finality
        final = finality.final(confidences(stats, canvas, finality.slots))
        places = stats.slots - canvas.window.start
        judged = stats.open & (places < finality.slots)
        sure = np.zeros(len(stats.slots), dtype=np.bool_)
        sure[judged] = final[places[judged]] > self._settings.threshold
        sure[ranked(stats.confidence, stats.open)[:1]] = True
        return commit(stats, drawn, sure)


def confidences(stats: Stats, canvas: Canvas, slots: int) -> NDArray[np.float64]:
    """[slots] of the window from its first on: of the likeliest token where a slot is open, one
    where it is decided or not there.
    """
    found = np.ones(slots)
    places = stats.slots - canvas.window.start
    inside = stats.open & (places < slots)
    found[places[inside]] = stats.confidence[inside]
    return found
