"""Keep the surest so far, and open again what has been outrun (running confidence remasking).

Knows no model. The number of kept slots grows at every pass, so that it ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.shadows import written
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Running:
    """Running confidence remasking (MDPO, He et al. 2025).

    After the pass s of a window, s times `step` slots are kept: those with the highest confidence
    that they ever had. A written slot that is not among them is opened again.
    """

    step: int = 1
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Ranked:
        return _Ranked(self)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.step)


class _Ranked:
    def __init__(self, settings: Running) -> None:
        self._settings = settings
        self._best: dict[int, float] = {}
        self._block = -1

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._best = canvas.block, {}
        opened = stats.slots[stats.open]
        for slot, confidence in zip(opened, stats.confidence[stats.open], strict=True):
            self._best[int(slot)] = max(self._best.get(int(slot), 0.0), float(confidence))
        slots = np.sort(np.concatenate([opened, written(canvas)]))
        score = np.array([self._best.get(int(slot), 1.0) for slot in slots])
        kept = slots[np.argsort(-score, kind="stable")]
        kept = kept[: self._settings.step * (canvas.step_in_block + 1)]
        fresh = stats.open & np.isin(stats.slots, kept)
        decided = written(canvas)
        return Action(
            commit=Writing.of(stats.slots[fresh], drawn.ids[fresh]),
            remask=decided[~np.isin(decided, kept)],
        )
