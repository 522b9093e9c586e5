"""Written slots as all the others see them, by way of masked copies beside the canvas.

Knows no rule for what to do about a slot that is not expected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.stats import Stats, log_probabilities


def written(canvas: Canvas) -> Slots:
    """The decided slots of the window that may be opened again, ascending."""
    inside = np.arange(canvas.window.start, canvas.window.stop)
    slots: Slots = inside[~canvas.undecided[inside] & ~canvas.frozen[inside]]
    return slots


def expected(stats: Stats, canvas: Canvas) -> tuple[Slots, NDArray[np.float64]]:
    """Slots that had a shadow, and the probability of their tokens by all the other slots."""
    if stats.shadow is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    slots, logits = stats.shadow
    logp = log_probabilities(logits)[np.arange(len(slots)), canvas.ids[slots]]
    return slots, np.exp(logp.astype(np.float64))
