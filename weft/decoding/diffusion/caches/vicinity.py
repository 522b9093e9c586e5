"""The vicinity cache of dInfer (arXiv 2510.08666): a block is read with its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.caches.extent import front
from weft.decoding.diffusion.caches.keys import Keys
from weft.decoding.diffusion.caches.masking import Masking
from weft.decoding.diffusion.canvas import Bits, Canvas


@dataclass(frozen=True, slots=True)
class Vicinity:
    """Implements `CachePolicy`: the window and `slots` on both sides of it are read in every pass.

    warm_up  steps of a text in which all is read
    refresh  all is read when a block begins and after so many steps; None: only when it begins

    Raises: `ValueError` for sizes that cannot be.
    """

    slots: int = 16
    warm_up: int = 4
    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.slots < 0 or self.warm_up < 1 or (self.refresh is not None and self.refresh < 1):
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.refresh == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: Traits) -> Masking:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: Keys) -> Bits | None:
            if canvas.step < self.warm_up or keys.due(canvas, self.refresh):
                return None
            slots = np.arange(canvas.length)
            first, last = front(canvas, traits) - self.slots, canvas.window.stop + self.slots
            bits: Bits = (slots >= first) & (slots < last)
            return bits

        return Masking(again, traits)
