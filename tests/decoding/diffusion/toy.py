"""A toy model, and plugs for it, that can be followed by hand: the tests of the loop use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.ports import CacheFeed, Need
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import SampledTokens, Stats

VOCABULARY, END, MASK = 10, 8, 9
TRAITS = ModelTraits(VOCABULARY, MASK, frozenset({END}))


@dataclass
class Toy:
    """Predicts `token(slot)` with a certainty that falls from slot to slot."""

    token: Callable[[int], int] = lambda slot: slot % 8
    traits: ModelTraits = TRAITS
    passes: list[list[Query]] = field(default_factory=list)

    def forward(self, queries: Sequence[Query]) -> list[NDArray[np.float32]]:
        self.passes.append(list(queries))
        return [self._logits(query) for query in queries]

    def forget(self, row: int) -> None:
        """Nothing is kept."""

    def _logits(self, query: Query) -> NDArray[np.float32]:
        slots = [*query.wanted, *query.shadows]
        logits = np.zeros((len(slots), VOCABULARY), dtype=np.float32)
        for row, slot in enumerate(slots):
            logits[row, self.token(int(slot))] = 9 - 0.1 * int(slot)
        logits[:, MASK] = -np.inf
        return logits


@dataclass(frozen=True)
class Leftmost:
    """Commits so many of the open slots, the leftmost ones."""

    count: int = 1
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Leftmost:
        return self

    def most_forwards(self, slots: int) -> int:
        return slots

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        rows = np.flatnonzero(stats.open)[: self.count]
        return Action(commit=SlotTokens.of(stats.slots[rows], drawn.ids[rows]))


@dataclass(frozen=True)
class Fours:
    """Blocks of so many slots."""

    size: int = 4
    beyond: bool = False

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Fours:
        return self

    def first(self, canvas: Canvas) -> range:
        return range(canvas.first, min(canvas.first + self.size, canvas.length))

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        begin = canvas.window.stop
        return range(begin, min(begin + self.size, canvas.length))


@dataclass(frozen=True)
class Everything:
    """Reads all slots in every pass; `owes` a pass over each finished block."""

    owes: bool = False
    predicts: bool = False
    exact: bool = True

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Everything:
        return self

    def plan(self, canvas: Canvas) -> CacheFeed:
        return CacheFeed(np.arange(canvas.length), canvas.length)

    def note(self, canvas: Canvas, action: Action) -> None:
        """Nothing is trusted."""

    def persist(self, canvas: Canvas, _following: range) -> CacheFeed | None:
        if not self.owes:
            return None
        return CacheFeed(np.arange(canvas.length), canvas.length, "persist")


@dataclass(frozen=True)
class AtEnd:
    """Stops at the first terminator with nothing undecided before it."""

    beyond: bool = False

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> AtEnd:
        return self

    def ended(self, canvas: Canvas, _stats: Stats) -> int | None:
        decided = canvas.ids[canvas.first : canvas.decided_to]
        ends = np.flatnonzero(decided == END)
        return canvas.first + int(ends[0]) if len(ends) else None
