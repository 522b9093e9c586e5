"""The port to a stop policy: when a text has ended before it is full."""

from __future__ import annotations

from typing import Protocol

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import Stats


class Stopping(Protocol):
    """A stop policy at work on one canvas."""

    def ended(self, canvas: Canvas, stats: Stats) -> int | None:
        """The slot of the terminator, when all before it is decided; None: write on.

        May trim what can no longer matter.
        """


class StopPolicy(Protocol):
    """Settings of a stop policy."""

    @property
    def beyond(self) -> bool:
        """Whether it looks at predictions behind the window."""

    def begin(self, canvas: Canvas, traits: Traits) -> Stopping:
        """For one canvas."""
