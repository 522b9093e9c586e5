"""Bookkeeping of one row's cache, and the base class of caches that read a set of slots again.

It tracks which slots were read, with which tokens and when; the keys stay with the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.ports import CacheFeed

NEVER = -1


def front(canvas: Canvas, traits: ModelTraits) -> int:
    """The first slot that is read with the window: the start of its block, if there are blocks."""
    start = canvas.window.start
    return start // traits.block * traits.block if traits.block else start


def reach(canvas: Canvas, traits: ModelTraits) -> int:
    """The slot after the last that the window sees."""
    if traits.attention == "full":
        return canvas.length
    stop = min(canvas.window.stop, canvas.length)  # a deletion may have left less
    if traits.attention == "causal_encoder":
        return stop
    return min(canvas.length, -(-stop // traits.block) * traits.block)


class CachedSlots:
    """ages       [slots] the step of the canvas in which a slot was read last; NEVER
    tokens     [slots] what was read there; NEVER: none, or an unknown one
    whole_at   the step in which all was read last; `whole_in`: the block
    """

    __slots__ = ("ages", "tokens", "whole_at", "whole_in")

    def __init__(self) -> None:
        self.ages: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.tokens: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.whole_at = self.whole_in = NEVER

    def fit(self, length: int) -> None:
        """Resize to `length` slots; new ones are unread."""
        more = max(0, length - len(self.ages))
        fresh = np.full(more, NEVER, dtype=np.int64)
        self.ages = np.concatenate([self.ages[:length], fresh])
        self.tokens = np.concatenate([self.tokens[:length], fresh])

    def changed(self, canvas: Canvas) -> Bits:
        """[slots] never read, or read with another token."""
        bits: Bits = self.tokens != canvas.ids
        return bits

    def clean(self, canvas: Canvas) -> Bits:
        """[slots] decided, and read since."""
        return ~canvas.undecided & ~self.changed(canvas)

    def read(self, canvas: Canvas, slots: Slots, *, whole: bool) -> None:
        """Note that `slots` are read in this step; `whole`: they are all that can be seen."""
        self.ages[slots] = canvas.step
        self.tokens[slots] = canvas.ids[slots]
        if whole:
            self.whole_at, self.whole_in = canvas.step, canvas.block

    def due(self, canvas: Canvas, every: int | None) -> bool:
        """Whether a full read is due: none in this block yet, or the last one `every` steps ago."""
        if self.whole_in != canvas.block:
            return True
        return every is not None and canvas.step - self.whole_at >= every

    def note(self, action: Action) -> None:
        """Mark slots as stale that are decided now: they were read undecided, whatever the id."""
        slots = action.commit.slots
        self.tokens[slots[slots < len(self.tokens)]] = NEVER


class SelectiveCache(ABC):
    """Base of cache policies that read some slots again. Implements `CachePolicy`."""

    predicts: ClassVar[bool] = False

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        return SelectiveCacheSession(lambda canvas, keys: self.stale(canvas, keys, traits), traits)

    @abstractmethod
    def stale(self, canvas: Canvas, keys: CachedSlots, traits: ModelTraits) -> Bits | None:
        """[slots] to read in addition to the window and changed slots; None: all."""


class SelectiveCacheSession:
    """Implements `CacheSession`."""

    def __init__(
        self, stale: Callable[[Canvas, CachedSlots], Bits | None], traits: ModelTraits
    ) -> None:
        self.keys = CachedSlots()
        self._stale = stale
        self._traits = traits

    def plan(self, canvas: Canvas) -> CacheFeed:
        self.keys.fit(canvas.length)
        stale = self._stale(canvas, self.keys)
        bits = np.ones(canvas.length, dtype=np.bool_) if stale is None else stale
        bits = bits | self.keys.changed(canvas)
        bits[front(canvas, self._traits) : canvas.window.stop] = True
        end = reach(canvas, self._traits)
        bits[end:] = False
        slots = np.flatnonzero(bits)
        whole = len(slots) == end
        self.keys.read(canvas, slots, whole=whole)
        return CacheFeed(slots, end, "whole" if whole else "denoise")

    def note(self, _canvas: Canvas, action: Action) -> None:
        self.keys.note(action)

    def persist(self, _canvas: Canvas, _following: range) -> CacheFeed | None:
        return None
