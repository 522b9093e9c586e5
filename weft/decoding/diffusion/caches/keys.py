"""What the cache of one row holds: of every slot, which token was read there and when.

Knows no keys, only that they were computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots

NEVER = -1


class Keys:
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
