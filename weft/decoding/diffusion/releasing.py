"""What of a canvas may be shown: what is decided, unless a guard minds.

Does not know how it was written.
"""

from __future__ import annotations

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.filters import Refusal
from weft.decoding.diffusion.plugs import Plugs


class Releasing:
    """Reviews one canvas piece by piece. `refusal`: what a guard said, if one did."""

    def __init__(self, canvas: Canvas, plugs: Plugs, traits: Traits) -> None:
        self.refusal: Refusal | None = None
        self._canvas = canvas
        self._guarding = [one.begin(canvas, traits) for one in plugs.guards]

    def release(self, end: int) -> bool:
        """Let slots before `end` be shown; false when a guard minds, and nothing more is."""
        canvas = self._canvas
        if end <= canvas.released:
            return True
        for guarding in self._guarding:
            self.refusal = guarding.review(canvas, end)
            if self.refusal is not None:
                return False
        canvas.released = max(canvas.released, end)
        return True
