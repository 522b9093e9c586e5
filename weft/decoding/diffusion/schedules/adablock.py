"""Blocks that end where the model expects a sentence to end. Knows no tokenizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.schedules.fixed import Equal, Fixed
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class AdaBlock:
    """AdaBlock (Lu et al. 2025). Implements `BlockSchedule`.

    A block of `size` slots ends, after the first look at it, behind the slot whose likeliest token
    is one of `delimiters` with the highest probability, if that reaches `sure`: .3 for LLaDA, .5
    for Dream.
    """

    delimiters: frozenset[int]
    size: int = 32
    sure: float = 0.3
    beyond: bool = False

    def begin(self, canvas: Canvas, traits: Traits) -> _Sentences:
        """See `BlockSchedule`."""
        return _Sentences(self, Fixed(self.size).begin(canvas, traits))


class _Sentences:
    def __init__(self, settings: AdaBlock, blocks: Equal) -> None:
        self._settings, self._blocks = settings, blocks
        self._delimiters = np.array(sorted(settings.delimiters), dtype=np.int64)

    def first(self, canvas: Canvas) -> range:
        """See `Blocks`."""
        return self._blocks.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        """See `Blocks`."""
        return self._blocks.following(canvas, stats)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        """See `Moving`."""
        window = canvas.window
        if canvas.step_in_block:
            return window
        ends = stats.open & np.isin(stats.top_ids[:, 0], self._delimiters)
        ends &= reaches(stats.confidence, self._settings.sure)
        if not ends.any():
            return window
        best = np.where(ends, stats.confidence, -1.0).argmax()
        return range(window.start, int(stats.slots[best]) + 1)
