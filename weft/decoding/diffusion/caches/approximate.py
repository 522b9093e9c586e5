"""Approximate caches, one for each paper: they reuse keys whose context may have changed.

They change the predictions of models with full attention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.tracking import (
    NEVER,
    CachedSlots,
    SelectiveCache,
    SelectiveCacheSession,
    front,
)
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.ports import CacheFeed
from weft.decoding.diffusion.query import RefreshCandidates


@dataclass(frozen=True, slots=True)
class PrefixCache(SelectiveCache):
    """Fast-dLLM (arXiv 2505.22618): a full read for each block and every `refresh` steps.

    refresh  None: only when a block begins
    suffix   whether slots after the window are read in every pass; else they are reused, too (the
             dual cache)

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = None
    suffix: bool = True

    def __post_init__(self) -> None:
        _check_refresh(self.refresh)

    @property
    def exact(self) -> bool:
        return self.refresh == 1

    def stale(self, canvas: Canvas, keys: CachedSlots, traits: ModelTraits) -> Bits | None:
        if keys.due(canvas, self.refresh):
            return None
        slots = np.arange(canvas.length)
        stop = canvas.length if self.suffix else canvas.window.stop
        bits: Bits = (slots >= front(canvas, traits)) & (slots < stop)
        return bits


@dataclass(frozen=True, slots=True)
class DelayedCache(SelectiveCache):
    """dKV-Cache (arXiv 2505.15781): undecided slots are read in every pass, the others once after
    they are decided. Keys move most in the step that writes the token, and little afterwards.

    refresh  steps between full reads; None: no more after the first

    Raises: `ValueError` for a `refresh` below 1.
    """

    refresh: int | None = 8

    def __post_init__(self) -> None:
        _check_refresh(self.refresh)

    @property
    def exact(self) -> bool:
        return self.refresh == 1

    def stale(self, canvas: Canvas, keys: CachedSlots, _traits: ModelTraits) -> Bits | None:
        due = self.refresh is not None and canvas.step - keys.whole_at >= self.refresh
        return None if due else canvas.undecided.copy()


@dataclass(frozen=True, slots=True)
class FreeCache(SelectiveCache):
    """FreeCache of FlashDLM (arXiv 2505.21467): prompt and decided slots after it freeze once they
    are read. Slots far behind the clean part of a text have little influence on it.

    blockwise  slots freeze when their block is finished, not one by one
    behind     the last frozen slots that are read in every pass all the same
    ahead      slots after the window that are read in every pass; None: all

    Raises: `ValueError` for sizes below zero.
    """

    blockwise: bool = True
    behind: int = 0
    ahead: int | None = None

    def __post_init__(self) -> None:
        if self.behind < 0 or (self.ahead is not None and self.ahead < 0):
            raise ValueError(f"no cache with {self}")

    def stale(self, canvas: Canvas, keys: CachedSlots, traits: ModelTraits) -> Bits:
        clean = keys.clean(canvas)
        frozen = canvas.length if clean.all() else int(clean.argmin())
        if self.blockwise:
            frozen = min(frozen, front(canvas, traits))
        slots = np.arange(canvas.length)
        bits: Bits = slots >= frozen - self.behind
        if self.ahead is not None:
            bits &= slots < canvas.window.stop + self.ahead
        return bits


@dataclass(frozen=True, slots=True)
class VicinityCache(SelectiveCache):
    """dInfer (arXiv 2510.08666): the window and `slots` on both sides of it are read in every pass.

    warm_up  first steps of a text, in which all slots are read
    refresh  steps between full reads of a block; None: only one, when it begins

    Raises: `ValueError` for sizes out of range.
    """

    slots: int = 16
    warm_up: int = 4
    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.slots < 0 or self.warm_up < 1 or (self.refresh is not None and self.refresh < 1):
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        return self.refresh == 1

    def stale(self, canvas: Canvas, keys: CachedSlots, traits: ModelTraits) -> Bits | None:
        if canvas.step < self.warm_up or keys.due(canvas, self.refresh):
            return None
        slots = np.arange(canvas.length)
        first, last = front(canvas, traits) - self.slots, canvas.window.stop + self.slots
        bits: Bits = (slots >= first) & (slots < last)
        return bits


@dataclass(frozen=True, slots=True)
class IntervalCache:
    """dLLM-Cache (arXiv 2506.06295): the prompt is read rarely, the answer more often. Implements
    `CachePolicy`.

    In between, the slots of the answer whose values moved most are read. The paper chooses them
    anew in every layer; here one choice, by the values of an early layer, serves all layers.

    prompt  steps between full reads
    answer  steps between reads of the whole answer
    share   of the answer's other slots, read in between

    Raises: `ValueError` for values out of range.
    """

    prompt: int = 100
    answer: int = 7
    share: float = 0.25
    predicts: bool = False

    def __post_init__(self) -> None:
        if self.prompt < 1 or self.answer < 1 or not 0 <= self.share <= 1:
            raise ValueError(f"no cache with {self}")

    @property
    def exact(self) -> bool:
        return self.prompt == 1

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> IntervalCacheSession:
        return IntervalCacheSession(self, traits)


class IntervalCacheSession(SelectiveCacheSession):
    """`answer_at` is the step in which the whole answer was read last. `keys` mirrors the row's
    cache, except for slots that the adapter chose.
    """

    def __init__(self, settings: IntervalCache, traits: ModelTraits) -> None:
        super().__init__(self._due, traits)
        self.answer_at = NEVER
        self._settings = settings

    def plan(self, canvas: Canvas) -> CacheFeed:
        feed = super().plan(canvas)
        others = np.setdiff1d(np.arange(canvas.first, feed.reach), feed.slots)
        count = ceil(self._settings.share * len(others))
        return replace(feed, choice=RefreshCandidates(others, count)) if count else feed

    def _due(self, canvas: Canvas, keys: CachedSlots) -> Bits | None:
        if keys.whole_at == NEVER or canvas.step - keys.whole_at >= self._settings.prompt:
            self.answer_at = canvas.step
            return None
        due = canvas.step - self.answer_at >= self._settings.answer
        if due:
            self.answer_at = canvas.step
        bits: Bits = (np.arange(canvas.length) >= canvas.first) & due
        return bits


def _check_refresh(refresh: int | None) -> None:
    if refresh is not None and refresh < 1:
        raise ValueError(f"all cannot be read every {refresh} steps")
