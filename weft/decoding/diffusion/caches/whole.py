"""No cache: every pass reads all that can be seen. What the others are measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.caches.extent import reach
from weft.decoding.diffusion.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Whole:
    """Implements `CachePolicy`."""

    @property
    def exact(self) -> bool:
        return True

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: Traits) -> Rereading:
        """See `CachePolicy`."""
        return Rereading(traits)


class Rereading:
    """Implements `Caching` and remembers nothing."""

    def __init__(self, traits: Traits) -> None:
        self._traits = traits

    def plan(self, canvas: Canvas) -> Feed:
        end = reach(canvas, self._traits)
        return Feed(np.arange(end, dtype=np.int64), end, "whole")

    def note(self, canvas: Canvas, action: Action) -> None:
        """See `Caching`."""

    def persist(self, _canvas: Canvas, _following: range) -> Feed | None:
        return None
