"""A policy that does whatever can be done to a canvas: commits, edits, opens, inserts, deletes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats

TOKENS = 60


@dataclass(frozen=True)
class Restless:
    """`moves`: also inserts and deletes. Depends on the seed and the step alone."""

    seed: int = 0
    moves: bool = False
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> Restless:
        return self

    def most_forwards(self, slots: int) -> int:
        return 3 * slots

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        chance = np.random.default_rng([self.seed, canvas.step])
        rows = np.flatnonzero(stats.open)
        rows = rows[: chance.integers(1, 4)] if chance.random() < 0.5 else rows[-1:]
        commit = SlotTokens.of(stats.slots[rows], drawn.ids[rows])
        written = np.flatnonzero(canvas.ours & ~canvas.undecided & ~canvas.frozen)
        if len(written) < 3 or chance.random() < 0.4:
            return Action(commit=commit)
        some = np.unique(chance.choice(written, 2))
        what = chance.integers(0, 4 if self.moves else 2)
        if what == 0:
            return Action(commit, SlotTokens.of(some, chance.integers(0, TOKENS, len(some))))
        if what == 1:
            inside = some[(some >= canvas.window.start) & (some < canvas.window.stop)]
            return Action(commit, remask=inside)
        if what == 2:
            return Action(delete=some[:1])
        return Action(insert=some[:1])
