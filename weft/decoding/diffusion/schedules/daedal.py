"""An answer that grows while its end is not in sight, and where a slot is too few (DAEDAL).

Knows no policy. Slots are only ever added, up to the canvas's limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.schedules.fixed import Equal, Fixed, fill_of
from weft.decoding.diffusion.stats import Stats


@dataclass(frozen=True, slots=True)
class Daedal:
    """DAEDAL (Li et al. 2025), for models that fill their answers up with terminators.

    The canvas is cut to `start` slots. Before anything is written, `more` slots are added again
    and again while the mean probability of a terminator over the last `tail` open slots is below
    `ending`. While writing, the open slot of the least confidence, if that is below `lost`,
    becomes `more` slots, unless the answer is ending: the mean over its tail reaches `ended`.
    `Canvas.limit` bounds all of it.
    """

    start: int = 64
    size: int = 32
    more: int = 8
    tail: int = 32
    ending: float = 0.5
    ended: float = 0.9
    lost: float = 0.1
    beyond: bool = True

    def begin(self, canvas: Canvas, traits: Traits) -> _Growing:
        """See `BlockSchedule`."""
        if not canvas.frozen[canvas.first + self.start :].any():
            canvas.trim(min(canvas.length, canvas.first + self.start))
        blocks = Fixed(self.size).begin(canvas, traits)
        return _Growing(self, blocks, fill_of(traits))


class _Growing:
    def __init__(self, settings: Daedal, blocks: Equal, fill: int) -> None:
        self._settings, self._blocks, self._fill = settings, blocks, fill
        self._long_enough = False

    def first(self, canvas: Canvas) -> range:
        """See `Blocks`."""
        return self._blocks.first(canvas)

    def following(self, canvas: Canvas, stats: Stats | None) -> range:
        """See `Blocks`. A full answer does not grow: its end was in sight."""
        if canvas.window.stop >= canvas.length:
            return range(canvas.length, canvas.length)
        return self._blocks.following(canvas, stats)

    def moved(self, canvas: Canvas, stats: Stats) -> range:
        """See `Moving`."""
        rules, window = self._settings, canvas.window
        ends = self._ends(canvas, stats)
        if not self._long_enough:
            self._long_enough = ends >= rules.ending or not canvas.grow(rules.more, self._fill)
            # a short canvas had cut the first block off
            return window if self._long_enough else self._blocks.first(canvas)
        if ends < rules.ended and stats.open.any():
            least = np.where(stats.open, stats.confidence, np.inf).argmin()
            if stats.confidence[least] < rules.lost:
                return self._widened(canvas, int(stats.slots[least]))
        return window

    def _widened(self, canvas: Canvas, slot: int) -> range:
        """The block with more slots in the place of one, the last ones pushed into the next block.

        Literals are not moved.
        """
        room = min(self._settings.more - 1, canvas.limit - canvas.length)
        if room > 0 and not canvas.frozen[slot:].any():
            canvas.insert(slot, room, self._fill)
            return self._blocks.at(canvas, canvas.window.start)
        return canvas.window

    def _ends(self, canvas: Canvas, stats: Stats) -> float:
        """The mean probability of an end over the open slots of the tail; sure where none is."""
        tail = canvas.undecided[stats.slots] & (stats.slots >= canvas.length - self._settings.tail)
        return float(stats.p_end[tail].mean()) if tail.any() else 1.0
