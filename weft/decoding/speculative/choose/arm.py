"""A method that may be chosen, and what its drafts take to make."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from weft.core.ports.clock import Clock
from weft.decoding.speculative.draft import Draft
from weft.decoding.speculative.method import Ask, Method

_LAST: Final = 9


class Arm:
    """`free`: its drafts take next to nothing beside a pass, so they may be made to be looked at.

    Of the others it is measured: `level_s`, the seconds that a level of a draft takes, and
    `nodes`, how many each level of the last one had.
    """

    def __init__(self, method: Method, *, free: bool, longest: int = 8) -> None:
        self.name = method.name
        self.method = method
        self.free = free
        self.nodes: tuple[int, ...] = (1,) * longest
        self._seconds: deque[float] = deque(maxlen=_LAST)

    @property
    def level_s(self) -> float | None:
        """None: it has not drafted yet. A median, as the first draft of a text takes longer."""
        return median(self._seconds) if self._seconds else None

    def timed(
        self, asks: Sequence[Ask], clock: Clock
    ) -> tuple[Sequence[Draft | BaseException], float]:
        """Drafts for some sequences of the method, and the seconds that they took."""
        before = clock.now()
        drafts = self.method.propose(asks)
        seconds = clock.now() - before
        self._learn(drafts, seconds)
        return drafts, seconds

    def _learn(self, drafts: Sequence[Draft | BaseException], seconds: float) -> None:
        depths = [draft.tree.depths for draft in drafts if isinstance(draft, Draft)]
        levels = sum(int(np.max(each)) for each in depths)
        self._seconds.append(seconds / max(levels, 1))
        largest = np.bincount(max(depths, key=len))[1:] if depths else ()
        # what is below was not asked for this time
        self.nodes = (*(int(count) for count in largest), *self.nodes[len(largest) :])
