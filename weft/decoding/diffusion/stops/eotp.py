"""What lies behind a sure terminator is not written (end-of-text prediction).

Trusts no prediction of a terminator that was not also written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.stats import Stats
from weft.decoding.diffusion.stops.contiguous import Ending, decided_ends


@dataclass(frozen=True, slots=True)
class EndOfText:
    """Implements `StopPolicy`. Learn2PD's end-of-text prediction (Bao et al. 2025), made safe.

    A terminator that was written while the model gave all terminators together a probability of
    `sure` at that slot cuts the canvas behind it, whatever is undecided before it. The text is
    over when nothing is. (The published code cuts at the likeliest terminator that is predicted,
    however unlikely it is.)
    """

    sure: float = 0.9
    beyond: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.sure <= 1.0:
            raise ValueError(f"sure at {self.sure}")

    def begin(self, _canvas: Canvas, traits: Traits) -> _Cutting:
        """See `StopPolicy`."""
        return _Cutting(traits, self.sure)


class _Cutting:
    def __init__(self, traits: Traits, sure: float) -> None:
        self._ends = np.array(sorted(traits.end_ids), dtype=np.int64)
        self._contiguous = Ending(traits, trims=False)
        self._sure = sure

    def ended(self, canvas: Canvas, stats: Stats) -> int | None:
        """See `Stopping`."""
        end = self._contiguous.ended(canvas, stats)
        if end is None:
            sure = stats.slots[stats.open & reaches(stats.p_end, self._sure)]
            cuts = np.intersect1d(decided_ends(canvas, self._ends), sure)
            if len(cuts) and not canvas.frozen[cuts[0] :].any():
                canvas.trim(int(cuts[0]) + 1)
        return end
