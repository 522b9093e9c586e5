"""Explore how far the model sees, then write that far at once (SlowFast sampling).

Knows no policy: which slots of the span are written is for a threshold to say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class SlowFast:
    """SlowFast sampling (Wei et al. 2025). Implements `BlockSchedule`.

    While exploring, the window is the next `span` slots and each pass notes the last slot whose
    confidence reaches `fair`; after `most` passes, or as soon as the last `steady` notes vary by a
    standard deviation below `spread`, the window ends there. When it is decided, exploring starts
    again behind it.
    """

    span: int = 128
    fair: float = 0.3
    most: int = 6
    steady: int = 2
    spread: float = 1.0
    beyond: bool = False

    def __post_init__(self) -> None:
        if self.span < 1 or self.most < 1 or self.steady < 2:
            raise ValueError(f"no exploring with {self}")

    def begin(self, _canvas: Canvas, traits: Traits) -> _Exploring:
        """See `BlockSchedule`."""
        return _Exploring(self, traits.block)


class _Exploring:
    def __init__(self, settings: SlowFast, block: int) -> None:
        self._settings, self._block = settings, block
        self._reached: list[int] = []
        self._fast = False

    def first(self, canvas: Canvas) -> range:
        """See `Blocks`."""
        return self._from(canvas, canvas.first)

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        """See `Blocks`."""
        return self._from(canvas, canvas.window.stop)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        """See `Moving`."""
        rules, window = self._settings, canvas.window
        if self._fast or not stats.open.any():
            return window
        fair = stats.slots[stats.open & reaches(stats.confidence, rules.fair)]
        self._reached.append(int(fair[-1]) if len(fair) else int(stats.slots[stats.open][0]))
        last = self._reached[-rules.steady :]
        steady = len(last) == rules.steady and float(np.std(last)) < rules.spread
        if not steady and len(self._reached) < rules.most:
            return window
        self._fast = True
        return range(window.start, self._reached[-1] + 1)

    def _from(self, canvas: Canvas, start: int) -> range:
        """Explore from the first undecided slot on."""
        self._reached, self._fast = [], False
        left = np.flatnonzero(canvas.undecided[start:])
        start = start + int(left[0]) if len(left) else canvas.length
        stop = min(start + self._settings.span, canvas.length)
        if self._block:  # one that sees itself whole is left before the next is begun
            stop = min(stop, start + self._block - start % self._block)
        return range(start, stop)
