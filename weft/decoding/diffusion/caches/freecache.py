"""FreeCache of FlashDLM (arXiv 2505.21467): what is decided from the left on is never read again.

What stands far behind the clean part of a text says little to it, so its keys hardly change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.caches.extent import front
from weft.decoding.diffusion.caches.keys import Keys
from weft.decoding.diffusion.caches.masking import Masking
from weft.decoding.diffusion.canvas import Bits, Canvas


@dataclass(frozen=True, slots=True)
class FreeCache:
    """Implements `CachePolicy`: prompt and decided slots after it freeze once they are read.

    blockwise  they freeze when their block is finished, not one by one
    behind     the last frozen slots, so many, are read in every pass all the same
    ahead      of what follows the window, so many slots are read in every pass; None: all

    Raises: `ValueError` for sizes below zero.
    """

    blockwise: bool = True
    behind: int = 0
    ahead: int | None = None

    def __post_init__(self) -> None:
        if self.behind < 0 or (self.ahead is not None and self.ahead < 0):
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        return False

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: Traits) -> Masking:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: Keys) -> Bits:
            clean = keys.clean(canvas)
            frozen = canvas.length if clean.all() else int(clean.argmin())
            if self.blockwise:
                frozen = min(frozen, front(canvas, traits))
            slots = np.arange(canvas.length)
            bits: Bits = slots >= frozen - self.behind
            if self.ahead is not None:
                bits &= slots < canvas.window.stop + self.ahead
            return bits

        return Masking(again, traits)
