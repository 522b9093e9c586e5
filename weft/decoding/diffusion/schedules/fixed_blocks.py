"""Blocks of equal size, left to right. Looks at no prediction."""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class FixedBlocks:
    """Implements `BlockSchedule`.

    size     slots of a block; 0: all of the answer. A model with blocks of its own is written in
             these, or in parts of them
    aligned  blocks begin at multiples of their size, counted from the prompt's first slot, so that
             the first one is what the prompt's last block has left. A model with blocks of its own
             is always written so

    A canvas that may grow gets another block when it is full. Blocks that hold literals alone are
    passed over.
    """

    size: int = 0
    aligned: bool = False
    beyond: bool = False

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"blocks of {self.size} slots")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> FixedBlocksSession:
        """See `BlockSchedule`."""
        own = traits.block
        # a block that sees itself whole is not written across its border
        size = self.size if not own or (self.size and own % self.size == 0) else own
        return FixedBlocksSession(size, self.aligned or own > 0, fill_of(traits))


class FixedBlocksSession:
    """Implements `Blocks`."""

    def __init__(self, size: int, aligned: bool, fill: int) -> None:
        self._size, self._aligned, self._fill = size, aligned, fill

    def first(self, canvas: Canvas) -> range:
        """See `Blocks`."""
        return self.at(canvas, canvas.first)

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        """See `Blocks`."""
        return self.at(canvas, canvas.window.stop)

    def at(self, canvas: Canvas, start: int) -> range:
        """The first block from `start` on with something to write."""
        while start < canvas.length or self._grown(canvas, start):
            stop = min(self._end(canvas, start), canvas.length)
            if canvas.undecided[start:stop].any():
                return range(start, stop)
            start = stop
        return range(start, start)

    def _grown(self, canvas: Canvas, start: int) -> bool:
        """Whether there is another block now. Without a size, all of the answer was the block."""
        if not self._size:
            return False
        return canvas.grow(self._end(canvas, start) - start, self._fill) > 0

    def _end(self, canvas: Canvas, start: int) -> int:
        """Where the block that begins at `start` ends."""
        if not self._size:
            return canvas.length
        return start + self._size - (start % self._size if self._aligned else 0)


def fill_of(traits: ModelTraits) -> int:
    """What an open slot holds before there is anything better."""
    return 0 if traits.mask_id is None else traits.mask_id
