"""The frame of caches that are a set of slots to read again; all the others are trusted.

Whatever the set: a slot is read again when its token has changed since it was read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.caches.extent import front, reach
from weft.decoding.diffusion.caches.keys import Keys
from weft.decoding.diffusion.canvas import Bits, Canvas

Again = Callable[[Canvas, Keys], Bits | None]
"""The slots to read again, [slots]; None: all."""


class Masking:
    """Implements `Caching`: `again` says what is read beside the window and what has changed."""

    def __init__(self, again: Again, traits: Traits) -> None:
        self.keys = Keys()
        self._again = again
        self._traits = traits

    def plan(self, canvas: Canvas) -> Feed:
        self.keys.fit(canvas.length)
        again = self._again(canvas, self.keys)
        bits = np.ones(canvas.length, dtype=np.bool_) if again is None else again
        bits = bits | self.keys.changed(canvas)
        bits[front(canvas, self._traits) : canvas.window.stop] = True
        end = reach(canvas, self._traits)
        bits[end:] = False
        slots = np.flatnonzero(bits)
        whole = len(slots) == end
        self.keys.read(canvas, slots, whole=whole)
        return Feed(slots, end, "whole" if whole else "denoise")

    def note(self, _canvas: Canvas, action: Action) -> None:
        self.keys.note(action)

    def persist(self, _canvas: Canvas, _following: range) -> Feed | None:
        return None
