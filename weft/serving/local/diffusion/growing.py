"""A schedule whose canvas grows by pieces up to its limit, so that `max_tokens` is a ceiling.

A text that ends early never pays for slots behind its end; a short canvas does not cut a long one.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.schedule import Blocks, BlockSchedule, Moving
from weft.decoding.diffusion.schedules.fixed import fill_of
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class Growing:
    """`schedule`, with `slots` more each time the text is full: at the end of a model's block."""

    schedule: BlockSchedule
    slots: int

    @property
    def beyond(self) -> bool:
        return self.schedule.beyond

    def begin(self, canvas: Canvas, traits: Traits) -> Blocks:
        inner = self.schedule.begin(canvas, traits)
        if isinstance(inner, Moving):
            return _MovingBlocks(inner, self.slots, traits)
        return _GrowingBlocks(inner, self.slots, traits)


def piece(slots: int, length: int, block: int) -> int:
    """How many slots a canvas of `length` gets: `slots`, and what fills a block of `block`."""
    return slots + (-(length + slots) % block if block else 0)


class _GrowingBlocks:
    def __init__(self, inner: Blocks, slots: int, traits: Traits) -> None:
        self._inner = inner
        self._slots = slots
        self._block = traits.block
        self._fill = fill_of(traits)

    def first(self, canvas: Canvas) -> range:
        return self._inner.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        window = self._inner.following(canvas, stats)
        if not window and canvas.grow(piece(self._slots, canvas.length, self._block), self._fill):
            window = self._inner.following(canvas, stats)
        return window


class _MovingBlocks(_GrowingBlocks):
    def __init__(self, inner: Moving, slots: int, traits: Traits) -> None:
        super().__init__(inner, slots, traits)
        self._moving = inner

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        return self._moving.moved(canvas, stats)
