"""Where a window begins and ends as attention sees it. Knows no cache."""

from __future__ import annotations

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas


def front(canvas: Canvas, traits: Traits) -> int:
    """The first slot that reads what is written in the window: of its block, where there are."""
    start = canvas.window.start
    return start // traits.block * traits.block if traits.block else start


def reach(canvas: Canvas, traits: Traits) -> int:
    """The slot after the last that the window sees."""
    if traits.attention == "full":
        return canvas.length
    stop = min(canvas.window.stop, canvas.length)  # a deletion may have left less
    if traits.attention == "causal_encoder":
        return stop
    return min(canvas.length, -(-stop // traits.block) * traits.block)
