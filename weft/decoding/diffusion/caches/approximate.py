"""The caches of Fast-dLLM (arXiv 2505.22618): what lies outside of a block is read once in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.tracking import NEVER, CachedSlots, SelectiveCacheSession, front
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.ports import CacheFeed
from weft.decoding.diffusion.query import RefreshCandidates


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Implements `CachePolicy`: all is read when a block begins, and every `refresh` steps.

    refresh  None: only when a block begins
    suffix   whether what follows the window is read in every pass; else it is trusted as well (the
             dual cache)

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = None
    suffix: bool = True

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"all cannot be read every {self.refresh} steps")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.refresh == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: CachedSlots) -> Bits | None:
            if keys.due(canvas, self.refresh):
                return None
            slots = np.arange(canvas.length)
            stop = canvas.length if self.suffix else canvas.window.stop
            bits: Bits = (slots >= front(canvas, traits)) & (slots < stop)
            return bits

        return SelectiveCacheSession(again, traits)


@dataclass(frozen=True, slots=True)
class DelayedCache:
    """Implements `CachePolicy`: undecided slots are read in every pass, the others once decided.

    refresh  all is read every so many steps; None: never

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = 8

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh < 1:
            raise ValueError(f"all cannot be read every {self.refresh} steps")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.refresh == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: CachedSlots) -> Bits | None:
            due = self.refresh is not None and canvas.step - keys.whole_at >= self.refresh
            return None if due else canvas.undecided.copy()

        return SelectiveCacheSession(again, traits)


@dataclass(frozen=True, slots=True)
class FreeCache:
    """Implements `CachePolicy`: prompt and decided slots after it freeze once they are read.

    blockwise  they freeze when their block is finished, not one by one
    behind     the last frozen slots, so many, are read in every pass all the same
    ahead      of what follows the window, so many slots are read in every pass; None: all

    Raises: `ValueError` for sizes below zero.
    """

    blockwise: bool = True
    behind: int = 0
    ahead: int | None = None

    def __post_init__(self) -> None:
        if self.behind < 0 or (self.ahead is not None and self.ahead < 0):
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        return False

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: CachedSlots) -> Bits:
            clean = keys.clean(canvas)
            frozen = canvas.length if clean.all() else int(clean.argmin())
            if self.blockwise:
                frozen = min(frozen, front(canvas, traits))
            slots = np.arange(canvas.length)
            bits: Bits = slots >= frozen - self.behind
            if self.ahead is not None:
                bits &= slots < canvas.window.stop + self.ahead
            return bits

        return SelectiveCacheSession(again, traits)


@dataclass(frozen=True, slots=True)
class IntervalCache:
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

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> IntervalCacheSession:
        """See `CachePolicy`."""
        return IntervalCacheSession(self, traits)


class IntervalCacheSession:
    """Implements `Caching`. `answer_at` is the step in which all of the answer was read last."""

    def __init__(self, settings: IntervalCache, traits: ModelTraits) -> None:
        self.answer_at = NEVER
        self._settings = settings
        self._masking = SelectiveCacheSession(self._again, traits)

    @property
    def keys(self) -> CachedSlots:
        """What the row's cache holds, but for what an adapter chose."""
        return self._masking.keys

    def plan(self, canvas: Canvas) -> CacheFeed:
        feed = self._masking.plan(canvas)
        others = np.setdiff1d(np.arange(canvas.first, feed.reach), feed.slots)
        count = ceil(self._settings.share * len(others))
        if not count:
            return feed
        return replace(feed, choice=RefreshCandidates(others, count))

    def note(self, canvas: Canvas, action: Action) -> None:
        self._masking.note(canvas, action)

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        return self._masking.persist(canvas, following)

    def _again(self, canvas: Canvas, keys: CachedSlots) -> Bits | None:
        if keys.whole_at == NEVER or canvas.step - keys.whole_at >= self._settings.prompt:
            self.answer_at = canvas.step
            return None
        due = canvas.step - self.answer_at >= self._settings.answer
        if due:
            self.answer_at = canvas.step
        bits: Bits = (np.arange(canvas.length) >= canvas.first) & due
        return bits


@dataclass(frozen=True, slots=True)
class VicinityCache:
    """Implements `CachePolicy`: the window and `slots` on both sides of it are read in every pass.

    warm_up  steps of a text in which all is read
    refresh  all is read when a block begins and after so many steps; None: only when it begins

    Raises: `ValueError` for sizes that cannot be.
    """

    slots: int = 16
    warm_up: int = 4
    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.slots < 0 or self.warm_up < 1 or (self.refresh is not None and self.refresh < 1):
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return self.refresh == 1

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        """See `CachePolicy`."""

        def again(canvas: Canvas, keys: CachedSlots) -> Bits | None:
            if canvas.step < self.warm_up or keys.due(canvas, self.refresh):
                return None
            slots = np.arange(canvas.length)
            first, last = front(canvas, traits) - self.slots, canvas.window.stop + self.slots
            bits: Bits = (slots >= first) & (slots < last)
            return bits

        return SelectiveCacheSession(again, traits)
