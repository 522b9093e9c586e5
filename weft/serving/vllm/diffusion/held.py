"""What vLLM's cache holds of a text, as a cache policy: all before the canvas, for good.

Knows no vLLM. Exact for models with blocks, as far as blocks are finished; for models whose slots
all see each other, it is the prompt read alone and finished canvases frozen (FreeCache's idea,
arXiv 2505.21467), and slots behind the canvas are not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.canvas import Canvas


class Region:
    """Implements `Caching`. The slots from `base` on are in vLLM's canvas, those before are held.

    Who emits a finished region moves `base` to its end.
    """

    def __init__(self, base: int, width: int, block: int) -> None:
        self.base = base
        self._width, self._block = width, block

    def end(self, canvas: Canvas) -> int:
        """The slot after the last that may be written before the next pass over final tokens."""
        end = self.base + self._width
        if self._block:
            end = min(end, (self.base // self._block + 1) * self._block)
        return min(end, canvas.length)

    def plan(self, canvas: Canvas) -> Feed:
        """See `Caching`."""
        end = self.end(canvas)
        return Feed(np.arange(self.base, end), end)

    def note(self, canvas: Canvas, action: Action) -> None:
        """See `Caching`. All of the canvas is read in every pass: nothing to remember."""

    def persist(self, canvas: Canvas, following: range) -> Feed | None:
        """See `Caching`."""
        end = self.end(canvas)
        if following and following.start < end:
            return None
        return Feed(np.arange(self.base, end), min(end + 1, canvas.length), "persist")


@dataclass(frozen=True, slots=True)
class Held:
    """Implements `CachePolicy` for one row, whose `region` it is."""

    region: Region
    predicts: bool = False
    exact: bool = False

    def begin(self, _canvas: Canvas, _traits: Traits) -> Region:
        """See `CachePolicy`."""
        return self.region
