"""Block schedules: which part of an answer is written when, by block size or by predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.stats import Stats, reaches


@dataclass(frozen=True, slots=True)
class FixedBlocks:
    """Implements `BlockSchedule`.

    size     slots of a block; 0: all of the answer. A model with blocks of its own is written in
             these, or in parts of them
    aligned  blocks begin at multiples of their size, counted from the prompt's first slot, so that
             the first one is the rest of the prompt's last block. Always so for a model with blocks
             of its own

    A canvas that may grow gets another block when it is full. Blocks of literals alone are skipped.
    """

    size: int = 0
    aligned: bool = False
    beyond: bool = False

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(f"blocks of {self.size} slots")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> FixedBlocksSession:
        own = traits.block
        # a block that sees itself whole is not written across its boundary
        size = self.size if not own or (self.size and own % self.size == 0) else own
        return FixedBlocksSession(size, self.aligned or own > 0, fill_of(traits))


class FixedBlocksSession:
    """Implements `ScheduleSession`."""

    def __init__(self, size: int, aligned: bool, fill: int) -> None:
        self._size, self._aligned, self._fill = size, aligned, fill

    def first(self, canvas: Canvas) -> range:
        return self.at(canvas, canvas.first)

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        return self.at(canvas, canvas.window.stop)

    def at(self, canvas: Canvas, start: int) -> range:
        """The first block from `start` on with something to write."""
        while start < canvas.length or self._grown(canvas, start):
            stop = min(self._end(canvas, start), canvas.length)
            if canvas.undecided[start:stop].any():
                return range(start, stop)
            start = stop
        return range(start, start)

    def _grown(self, canvas: Canvas, start: int) -> bool:
        """Whether another block was added. Without a size, the whole answer was the block."""
        if not self._size:
            return False
        return canvas.grow(self._end(canvas, start) - start, self._fill) > 0

    def _end(self, canvas: Canvas, start: int) -> int:
        """The end of the block that begins at `start`."""
        if not self._size:
            return canvas.length
        return start + self._size - (start % self._size if self._aligned else 0)


def fill_of(traits: ModelTraits) -> int:
    """The initial content of an open slot."""
    return 0 if traits.mask_id is None else traits.mask_id


@dataclass(frozen=True, slots=True)
class AdaBlock:
    """AdaBlock (Lu et al. 2025). Implements `BlockSchedule`.

    After its first pass, a block of `size` slots is cut behind the slot whose likeliest token is
    one of `delimiters` with the highest probability, if that reaches `sure`: .3 for LLaDA, .5 for
    Dream.
    """

    delimiters: frozenset[int]
    size: int = 32
    sure: float = 0.3
    beyond: bool = False

    def begin(self, canvas: Canvas, traits: ModelTraits) -> _AdaBlockSession:
        return _AdaBlockSession(self, FixedBlocks(self.size).begin(canvas, traits))


class _AdaBlockSession:
    def __init__(self, settings: AdaBlock, blocks: FixedBlocksSession) -> None:
        self._settings, self._blocks = settings, blocks
        self._delimiters = np.array(sorted(settings.delimiters), dtype=np.int64)

    def first(self, canvas: Canvas) -> range:
        return self._blocks.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        return self._blocks.following(canvas, stats)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        window = canvas.window
        if canvas.step_in_block:
            return window
        ends = stats.open & np.isin(stats.top_ids[:, 0], self._delimiters)
        ends &= reaches(stats.confidence, self._settings.sure)
        if not ends.any():
            return window
        best = np.where(ends, stats.confidence, -1.0).argmax()
        return range(window.start, int(stats.slots[best]) + 1)


@dataclass(frozen=True, slots=True)
class Daedal:
    """DAEDAL (Li et al. 2025), for models that pad their answers with terminators.

    The canvas is cut to `start` slots. Before anything is written, `more` slots are added
    repeatedly while the mean probability of a terminator over the last `tail` open slots is below
    `ending`. While writing, the open slot of the lowest confidence, if that is below `lost`,
    becomes `more` slots, unless the answer is ending: the mean over its tail reaches `ended`.
    `Canvas.limit` bounds the length.
    """

    start: int = 64
    size: int = 32
    more: int = 8
    tail: int = 32
    ending: float = 0.5
    ended: float = 0.9
    lost: float = 0.1
    beyond: bool = True

    def begin(self, canvas: Canvas, traits: ModelTraits) -> _DaedalSession:
        if not canvas.frozen[canvas.first + self.start :].any():
            canvas.trim(min(canvas.length, canvas.first + self.start))
        blocks = FixedBlocks(self.size).begin(canvas, traits)
        return _DaedalSession(self, blocks, fill_of(traits))


class _DaedalSession:
    def __init__(self, settings: Daedal, blocks: FixedBlocksSession, fill: int) -> None:
        self._settings, self._blocks, self._fill = settings, blocks, fill
        self._long_enough = False

    def first(self, canvas: Canvas) -> range:
        return self._blocks.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        """See `ScheduleSession`. A full answer does not grow: its end was predicted."""
        if canvas.window.stop >= canvas.length:
            return range(canvas.length, canvas.length)
        return self._blocks.following(canvas, stats)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        settings, window = self._settings, canvas.window
        ends = self._ends(canvas, stats)
        if not self._long_enough:
            grows = ends < settings.ending and canvas.grow(settings.more, self._fill) > 0
            self._long_enough = not grows
            # the short canvas had truncated the first block
            return window if self._long_enough else self._blocks.first(canvas)
        if ends < settings.ended and stats.open.any():
            least = np.where(stats.open, stats.confidence, np.inf).argmin()
            if stats.confidence[least] < settings.lost:
                return self._widened(canvas, int(stats.slots[least]))
        return window

    def _widened(self, canvas: Canvas, slot: int) -> range:
        """Replace one slot by more, pushing the last ones into the next block; literals stay."""
        room = min(self._settings.more - 1, canvas.limit - canvas.length)
        if room > 0 and not canvas.frozen[slot:].any():
            canvas.insert(slot, room, self._fill)
            return self._blocks.at(canvas, canvas.window.start)
        return canvas.window

    def _ends(self, canvas: Canvas, stats: Stats) -> float:
        """The mean probability of an end over the open slots of the tail; 1 where there is none."""
        tail = canvas.undecided[stats.slots] & (stats.slots >= canvas.length - self._settings.tail)
        return float(stats.p_end[tail].mean()) if tail.any() else 1.0


@dataclass(frozen=True, slots=True)
class SlowFast:
    """SlowFast sampling (Wei et al. 2025). Implements `BlockSchedule`.

    While exploring, the window is the next `span` slots and each pass notes the last slot whose
    confidence reaches `fair`; after `most` passes, or as soon as the last `steady` notes have a
    standard deviation below `spread`, the window ends there. When it is decided, exploring starts
    again behind it.
    """

    span: int = 128
    fair: float = 0.3
    most: int = 6
    steady: int = 2
    spread: float = 1.0
    beyond: bool = False

    def __post_init__(self) -> None:
        if self.span < 1 or self.most < 1 or self.steady < 2:
            raise ValueError(f"no exploring with {self}")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _SlowFastSession:
        return _SlowFastSession(self, traits.block)


class _SlowFastSession:
    def __init__(self, settings: SlowFast, block: int) -> None:
        self._settings, self._block = settings, block
        self._reached: list[int] = []
        self._fast = False

    def first(self, canvas: Canvas) -> range:
        return self._from(canvas, canvas.first)

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        return self._from(canvas, canvas.window.stop)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        settings, window = self._settings, canvas.window
        if self._fast or not stats.open.any():
            return window
        fair = stats.slots[stats.open & reaches(stats.confidence, settings.fair)]
        self._reached.append(int(fair[-1]) if len(fair) else int(stats.slots[stats.open][0]))
        last = self._reached[-settings.steady :]
        steady = len(last) == settings.steady and float(np.std(last)) < settings.spread
        if not steady and len(self._reached) < settings.most:
            return window
        self._fast = True
        return range(window.start, self._reached[-1] + 1)

    def _from(self, canvas: Canvas, start: int) -> range:
        """Explore from the first undecided slot on."""
        self._reached, self._fast = [], False
        left = np.flatnonzero(canvas.undecided[start:])
        start = start + int(left[0]) if len(left) else canvas.length
        stop = min(start + self._settings.span, canvas.length)
        if self._block:  # a block that sees itself whole is finished before the next begins
            stop = min(stop, start + self._block - start % self._block)
        return range(start, stop)
