"""The port to a block schedule: which part of the answer may be written now."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import Stats


class Blocks(Protocol):
    """A schedule at work on one canvas, which it may grow."""

    def first(self, canvas: Canvas) -> range:
        """The first window; empty: there is nothing to write."""

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        """The window after the one whose slots are all decided; empty: the text is full."""


@runtime_checkable
class Moving(Blocks, Protocol):
    """A schedule that moves its window, or grows the canvas, by the predictions of each pass."""

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        """The window from now on; asked after each pass over it, before anything is proposed.

        Where slots came or went, nothing is proposed before they are predicted.
        """


class BlockSchedule(Protocol):
    """Settings of a schedule."""

    @property
    def beyond(self) -> bool:
        """Whether it looks at predictions behind the window."""

    def begin(self, canvas: Canvas, traits: Traits) -> Blocks:
        """For one canvas."""
