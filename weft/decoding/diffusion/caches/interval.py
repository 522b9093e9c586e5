"""The adaptive cache of dLLM-Cache (arXiv 2506.06295): the prompt seldom, the answer oftener.

In between, the answer's slots are read whose values have moved most. The paper chooses them anew in
every layer; here one choice, by the values of an early layer, serves all layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.cache import Feed
from weft.decoding.diffusion.caches.keys import NEVER, Keys
from weft.decoding.diffusion.caches.masking import Masking
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.query import Choice


@dataclass(frozen=True, slots=True)
class Interval:
    """Implements `CachePolicy`.

    prompt  all is read every so many steps
    answer  the whole answer is read every so many
    share   in between, of the answer's slots that are not read anyway, so many are

    Raises: `ValueError` for values out of range.
    """

    prompt: int = 100
    answer: int = 7
    share: float = 0.25

    def __post_init__(self) -> None:
        if self.prompt < 1 or self.answer < 1 or not 0 <= self.share <= 1:
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.prompt == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: Traits) -> Refreshing:
        """See `CachePolicy`."""
        return Refreshing(self, traits)


class Refreshing:
    """Implements `Caching`. `answer_at` is the step in which all of the answer was read last."""

    def __init__(self, settings: Interval, traits: Traits) -> None:
        self.answer_at = NEVER
        self._settings = settings
        self._masking = Masking(self._again, traits)

    @property
    def keys(self) -> Keys:
        """What the row's cache holds, but for what an adapter chose."""
        return self._masking.keys

    def plan(self, canvas: Canvas) -> Feed:
        feed = self._masking.plan(canvas)
        others = np.setdiff1d(np.arange(canvas.first, feed.reach), feed.slots)
        count = ceil(self._settings.share * len(others))
        if not count:
            return feed
        return replace(feed, choice=Choice(others, count))

    def note(self, canvas: Canvas, action: Action) -> None:
        self._masking.note(canvas, action)

    def persist(self, canvas: Canvas, following: range) -> Feed | None:
        return self._masking.persist(canvas, following)

    def _again(self, canvas: Canvas, keys: Keys) -> Bits | None:
        if keys.whole_at == NEVER or canvas.step - keys.whole_at >= self._settings.prompt:
            self.answer_at = canvas.step
            return None
        due = canvas.step - self.answer_at >= self._settings.answer
        if due:
            self.answer_at = canvas.step
        bits: Bits = (np.arange(canvas.length) >= canvas.first) & due
        return bits
