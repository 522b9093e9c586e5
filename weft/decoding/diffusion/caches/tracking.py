"""What the cache of one row holds, and the frame of caches that read a set of slots again.

Knows no keys, only that they were computed, from which tokens and when.
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
    """The first slot that reads what is written in the window: of its block, where there are."""
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
    tokens     [slots] what was read there; NEVER: nothing, or nothing that is known
    whole_at   the step in which all was read last; `whole_in`: the block
    """

    __slots__ = ("ages", "tokens", "whole_at", "whole_in")

    def __init__(self) -> None:
        self.ages: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.tokens: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.whole_at = self.whole_in = NEVER

    def fit(self, length: int) -> None:
        """There are `length` slots now: new ones were never read."""
        more = max(0, length - len(self.ages))
        fresh = np.full(more, NEVER, dtype=np.int64)
        self.ages = np.concatenate([self.ages[:length], fresh])
        self.tokens = np.concatenate([self.tokens[:length], fresh])

    def changed(self, canvas: Canvas) -> Bits:
        """[slots] never read, or with another token than there is now."""
        bits: Bits = self.tokens != canvas.ids
        return bits

    def clean(self, canvas: Canvas) -> Bits:
        """[slots] decided, and read since."""
        return ~canvas.undecided & ~self.changed(canvas)

    def read(self, canvas: Canvas, slots: Slots, *, whole: bool) -> None:
        """These are read in this step; `whole`: they are all that can be seen."""
        self.ages[slots] = canvas.step
        self.tokens[slots] = canvas.ids[slots]
        if whole:
            self.whole_at, self.whole_in = canvas.step, canvas.block

    def due(self, canvas: Canvas, every: int | None) -> bool:
        """Whether all was never read in this block, or last `every` steps ago; None: in it once."""
        if self.whole_in != canvas.block:
            return True
        return every is not None and canvas.step - self.whole_at >= every

    def note(self, action: Action) -> None:
        """What was read of slots that are decided now was no token, whatever its id."""
        slots = action.commit.slots
        self.tokens[slots[slots < len(self.tokens)]] = NEVER


class SelectiveCache(ABC):
    """Implements `CachePolicy`: settings of a cache that reads some slots again, and trusts all the
    others until their tokens change.
    """

    predicts: ClassVar[bool] = False

    @property
    def exact(self) -> bool:
        """Whether all is read in every pass."""
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> SelectiveCacheSession:
        return SelectiveCacheSession(lambda canvas, keys: self.stale(canvas, keys, traits), traits)

    @abstractmethod
    def stale(self, canvas: Canvas, keys: CachedSlots, traits: ModelTraits) -> Bits | None:
        """[slots] that are read beside the window and what has changed; None: all."""


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
