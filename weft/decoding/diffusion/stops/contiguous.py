"""A text is over at its first terminator, once all before it is decided.

Knows no probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class Contiguous:
    """Implements `StopPolicy`.

    A terminator with an undecided slot before it ends nothing yet. `trims`: the slots behind it
    are dropped at once, which makes passes cheaper; not for policies that may take a terminator
    back, nor for models that were trained on canvases of one length.
    """

    trims: bool = False
    beyond: bool = False

    def begin(self, _canvas: Canvas, traits: Traits) -> Ending:
        """See `StopPolicy`."""
        return Ending(traits, self.trims)


class Ending:
    """Implements `Stopping`."""

    def __init__(self, traits: Traits, trims: bool) -> None:
        self._ends = np.array(sorted(traits.end_ids), dtype=np.int64)
        self._trims = trims

    def ended(self, canvas: Canvas, _stats: Stats) -> int | None:
        """See `Stopping`."""
        ends = decided_ends(canvas, self._ends)
        if not len(ends):
            return None
        if ends[0] < canvas.decided_to:
            return int(ends[0])
        if self._trims and not canvas.frozen[ends[0] :].any():
            canvas.trim(int(ends[0]) + 1)
        return None


def decided_ends(canvas: Canvas, end_ids: Slots) -> Slots:
    """The slots of the answer that were decided to end it, ascending."""
    decided = canvas.ours & ~canvas.undecided & ~canvas.frozen
    return np.flatnonzero(decided & np.isin(canvas.ids, end_ids))
