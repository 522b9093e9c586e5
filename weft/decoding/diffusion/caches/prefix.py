"""The caches of Fast-dLLM (arXiv 2505.22618): what lies outside of a block is read once in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.caches.extent import front
from weft.decoding.diffusion.caches.keys import Keys
from weft.decoding.diffusion.caches.masking import Masking
from weft.decoding.diffusion.canvas import Bits, Canvas


@dataclass(frozen=True, slots=True)
class Prefix:
    """Implements `CachePolicy`: all is read when a block begins, and every `refresh` steps.

    refresh  None: only when a block begins
    suffix   whether what follows the window is read in every pass; else it is trusted as well (the
             dual cache)

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = None
    suffix: bool = True

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"all cannot be read every {self.refresh} steps")

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
            if keys.due(canvas, self.refresh):
                return None
            slots = np.arange(canvas.length)
            stop = canvas.length if self.suffix else canvas.window.stop
            bits: Bits = (slots >= front(canvas, traits)) & (slots < stop)
            return bits

        return Masking(again, traits)
