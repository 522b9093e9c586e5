"""Stop policies: when a text ends before its canvas is full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import Stats, reaches


@dataclass(frozen=True, slots=True)
class FirstTerminator:
    """Implements `StopPolicy`.

    A terminator with an undecided slot before it does not end the text yet. `trims`: the slots
    behind it are dropped at once, which makes passes cheaper; not for policies that may retract a
    terminator, nor for models that were trained on canvases of one length.
    """

    trims: bool = False
    beyond: bool = False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> FirstTerminatorSession:
        return FirstTerminatorSession(traits, self.trims)


class FirstTerminatorSession:
    """Implements `StopSession`."""

    def __init__(self, traits: ModelTraits, trims: bool) -> None:
        self._ends = np.array(sorted(traits.end_ids), dtype=np.int64)
        self._trims = trims

    def ended(self, canvas: Canvas, _stats: Stats) -> int | None:
        ends = decided_ends(canvas, self._ends)
        if not len(ends):
            return None
        if ends[0] < canvas.decided_to:
            return int(ends[0])
        if self._trims and not canvas.frozen[ends[0] :].any():
            canvas.trim(int(ends[0]) + 1)
        return None


def decided_ends(canvas: Canvas, end_ids: Slots) -> Slots:
    """The slots of the answer that were decided as terminators, ascending."""
    decided = canvas.ours & ~canvas.undecided & ~canvas.frozen
    return np.flatnonzero(decided & np.isin(canvas.ids, end_ids))


@dataclass(frozen=True, slots=True)
class EndOfTextStop:
    """Implements `StopPolicy`. Learn2PD's end-of-text prediction (Bao et al. 2025), made safe.

    A terminator cuts the canvas behind it if the model gave all terminators together a probability
    of `sure` at that slot, even with undecided slots before it. The text ends when there are none.
    (The published code cuts at the likeliest predicted terminator, however unlikely it is.)
    """

    sure: float = 0.9
    beyond: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.sure <= 1.0:
            raise ValueError(f"sure at {self.sure}")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _EndOfTextSession:
        return _EndOfTextSession(traits, self.sure)


class _EndOfTextSession:
    def __init__(self, traits: ModelTraits, sure: float) -> None:
        self._ends = np.array(sorted(traits.end_ids), dtype=np.int64)
        self._contiguous = FirstTerminatorSession(traits, trims=False)
        self._sure = sure

    def ended(self, canvas: Canvas, stats: Stats) -> int | None:
        end = self._contiguous.ended(canvas, stats)
        if end is None:
            sure = stats.slots[stats.open & reaches(stats.p_end, self._sure)]
            cuts = np.intersect1d(decided_ends(canvas, self._ends), sure)
            if len(cuts) and not canvas.frozen[cuts[0] :].any():
                canvas.trim(int(cuts[0]) + 1)
        return end
