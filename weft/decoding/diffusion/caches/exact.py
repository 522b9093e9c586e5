"""Caches that change no prediction: no cache, and finished blocks that are read once.

Block diffusion (BD3LM, arXiv 2503.09573), SDAR, LLaDA2, Fast-dLLM v2 (arXiv 2509.26328).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.core.errors import CapabilityError
from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.tracking import NEVER, CachedSlots, front, reach
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.ports import CacheFeed, CachePolicy


@dataclass(frozen=True, slots=True)
class NoCache:
    """Implements `CachePolicy`."""

    @property
    def exact(self) -> bool:
        return True

    @property
    def predicts(self) -> bool:
        return False

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> NoCacheSession:
        return NoCacheSession(traits)


class NoCacheSession:
    """Implements `CacheSession` without state."""

    def __init__(self, traits: ModelTraits) -> None:
        self._traits = traits

    def plan(self, canvas: Canvas) -> CacheFeed:
        end = reach(canvas, self._traits)
        return CacheFeed(np.arange(end, dtype=np.int64), end, "whole")

    def note(self, canvas: Canvas, action: Action) -> None:
        """See `CacheSession`."""

    def persist(self, _canvas: Canvas, _following: range) -> CacheFeed | None:
        return None


@dataclass(frozen=True, slots=True)
class BlockCausalCache:
    """Implements `CachePolicy` for block-causal models and causal encoders.

    joined    a finished block is read with the next one, not in a pass of its own: as exact, and
              one pass less for each block
    predicts  that pass of its own also writes the first slot of the next block; only for models
              with a shift
    within    where a window is part of a block, the rest of the block is reused once its first
              slot is decided: the only inexact option here (Fast-dLLM v2's sub-blocks)

    Raises: `ValueError` where there is no pass that could predict.
    """

    joined: bool = False
    predicts: bool = False
    within: bool = False

    def __post_init__(self) -> None:
        if self.joined and self.predicts:
            raise ValueError("a block that is read with the next one cannot predict its first slot")

    @property
    def exact(self) -> bool:
        """Whether blocks are read as a whole."""
        return not self.within

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> BlockCausalSession:
        if traits.attention == "full":
            raise CapabilityError(
                "a model whose slots all see each other has no finished blocks to keep",
                hint="use fastdllm_prefix, fastdllm_dual, delayed or freecache",
            )
        if self.predicts and not traits.shifted:
            raise CapabilityError("only a model with a shift predicts the slot after a block")
        return BlockCausalSession(self, traits)


class BlockCausalSession:
    """Implements `CacheSession`.

    `settled` [slots] marks slots that were last read as context before a window. A causal encoder
    reads them differently inside one, so equal tokens do not prove equal keys.
    """

    def __init__(self, settings: BlockCausalCache, traits: ModelTraits) -> None:
        self.keys = CachedSlots()
        self.settled: Bits = np.empty(0, dtype=np.bool_)
        self._settings = settings
        self._traits = traits
        self._size = traits.block or 1

    def plan(self, canvas: Canvas) -> CacheFeed:
        begin, end = front(canvas, self._traits), reach(canvas, self._traits)
        owed = self._owed(canvas, begin)
        first = begin if owed is None else owed
        slots = np.arange(first, end)
        if self._trusts_block(canvas, owed):
            slots = np.flatnonzero(self.keys.changed(canvas)[:end] | self._in_window(canvas, end))
        self._read(canvas, slots, begin, whole=first == 0)
        return CacheFeed(slots, end, "whole" if first == 0 and len(slots) == end else "denoise")

    def note(self, _canvas: Canvas, action: Action) -> None:
        self.keys.note(action)

    def persist(self, canvas: Canvas, following: range) -> CacheFeed | None:
        """The pass over finished blocks that are not stored yet; None while one is unfinished."""
        end = reach(canvas, self._traits)
        if following and (self._settings.joined or following.start < end):
            return None
        if canvas.decided_to < end:
            end = canvas.decided_to // self._size * self._size
        owed = self._owed(canvas, end)
        if owed is None:
            return None
        slots = np.arange(owed, end)
        self._read(canvas, slots, end, whole=owed == 0)
        seen = max(end, following.start + 1) if self._settings.predicts and following else end
        return CacheFeed(slots, seen, "persist")

    def _owed(self, canvas: Canvas, end: int) -> int | None:
        """The start of the first block before `end` that is not stored as it is now, if any."""
        self.keys.fit(canvas.length)
        more = np.zeros(max(0, canvas.length - len(self.settled)), dtype=np.bool_)
        self.settled = np.concatenate([self.settled[: canvas.length], more])
        stale = self.keys.changed(canvas)[:end] | ~self.settled[:end]
        if not stale.any():
            return None
        return int(stale.argmax()) // self._size * self._size

    def _trusts_block(self, canvas: Canvas, owed: int | None) -> bool:
        """Whether only the window of a block is read, because the whole block was read before."""
        begin, end = front(canvas, self._traits), reach(canvas, self._traits)
        known = bool((self.keys.ages[begin:end] != NEVER).all())
        begun = not canvas.undecided[canvas.window.start]
        return self._settings.within and owed is None and known and begun

    def _in_window(self, canvas: Canvas, end: int) -> Bits:
        slots = np.arange(end)
        bits: Bits = (slots >= canvas.window.start) & (slots < canvas.window.stop)
        return bits

    def _read(self, canvas: Canvas, slots: Slots, begin: int, *, whole: bool) -> None:
        """Note a read; slots before `begin` are context before the window."""
        self.keys.read(canvas, slots, whole=whole)
        self.settled[slots] = slots < begin


def exact_cache(traits: ModelTraits) -> CachePolicy:
    """The best cache that changes no prediction: none for models with full attention."""
    return NoCache() if traits.attention == "full" else BlockCausalCache(joined=True)
