"""A structure in the denoising loop: what may be written, what is written, and where next.

Slots move while an answer is laid out, so its schedule, its stop and its cache come from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.exact import BlockCausalCache, NoCache
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.ports import DecoderConfig
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import SampledTokens, Stats
from weft.decoding.diffusion.structure.slots import OPEN
from weft.decoding.diffusion.structure.structure import Structure


class StructureFiller:
    """One structure on one canvas: its own guidance, verifier, schedule and stop, as settings and
    at work. `window` slots are written at once where attention is full; 0: all.
    """

    passes = 0
    beyond = False

    def __init__(self, structure: Structure, traits: ModelTraits, window: int = 0) -> None:
        self.structure = structure
        self._traits = traits
        self._width = window
        self._fill = 0 if traits.mask_id is None else traits.mask_id
        self._open: Bits = np.zeros(0, dtype=np.bool_)
        self._order: list[int] = []
        """The slots that were admitted last, in that order: what they mean may depend on it."""

    def canvas(self, prompt: Sequence[int], *, row: int = 0) -> Canvas:
        """The answer behind `prompt`, as it begins."""
        tokens = np.array(self.structure.tokens, dtype=np.int64)
        decided = {int(slot): int(tokens[slot]) for slot in np.flatnonzero(tokens != OPEN)}
        self._open = tokens == OPEN
        return Canvas(prompt, len(tokens), self._fill, row=row, literals=decided)

    def configure(self, config: DecoderConfig) -> DecoderConfig:
        """`config` to fill this structure: its policy, verifiers and guards, and a cache that is
        exact however slots move.
        """
        full = self._traits.attention == "full"
        return replace(
            config,
            schedule=self,
            cache=NoCache() if full else BlockCausalCache(joined=True),
            stop=self,
            guidance=(*config.guidance, self),
            verifiers=(*config.verifiers, self),
        )

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> StructureFiller:
        """The same: it is made for one canvas."""
        return self

    # --- guidance

    def asks(self, _query: Query) -> Query | None:
        """Nothing."""
        return None

    def guided(
        self,
        logits: NDArray[np.float32],
        slots: Slots,
        _answer: NDArray[np.float32] | None,
        canvas: Canvas,
    ) -> NDArray[np.float32]:
        """-inf for what cannot stand in an open slot."""
        out = logits.copy()
        for row, slot in enumerate((slots - canvas.first).tolist()):
            if self._open[slot]:
                out[row] = self.structure.restrict(slot, logits[row])
        return out

    # --- verifier

    def verified(
        self, action: Action, stats: Stats, drawn: SampledTokens, canvas: Canvas
    ) -> Action:
        """Only commits, the surest first; where none can stand, the leftmost open slot."""
        slots, ids = action.commit.slots, action.commit.ids
        rows = stats.rows(slots)
        order = np.argsort(-np.where(drawn.ids[rows] == ids, drawn.p[rows], 0.0), kind="stable")
        places = (slots[order] - canvas.first).tolist()
        fine = np.array(self.structure.admitted(places, ids[order].tolist()), dtype=np.bool_)
        kept = order[fine] if len(order) else order
        self._order = (slots[kept] - canvas.first).tolist()
        if len(kept):
            commit = SlotTokens.of(slots[kept], ids[kept])
        else:
            first = np.flatnonzero(stats.open)[:1]
            commit = SlotTokens.of(stats.slots[first], drawn.ids[first])
        return Action(commit=commit, renoise=action.renoise, soft=action.soft)

    # --- stop

    def ended(self, canvas: Canvas, _stats: Stats) -> int | None:
        """Lay the canvas out anew after what was committed; its end, when all is written."""
        new = np.flatnonzero(self._open & ~canvas.undecided[canvas.first :]).tolist()
        if len(new) > 1:
            new = self._order
        self.structure.write(new, [int(canvas.ids[canvas.first + slot]) for slot in new])
        self._lay(canvas)
        return canvas.length if self.structure.over else None

    def _lay(self, canvas: Canvas) -> None:
        """Only what has changed is replaced: what an open slot holds may be noise."""
        tokens = np.array(self.structure.tokens, dtype=np.int64)
        was = np.where(canvas.undecided, OPEN, canvas.ids)[canvas.first :]
        shorter = min(len(was), len(tokens))
        same = was[:shorter] == tokens[:shorter]
        head = shorter if same.all() else int((~same).argmax())
        tail = same_at_end(was[head:], tokens[head:])
        start, stop = canvas.first + head, canvas.length - tail
        middle = tokens[head : len(tokens) - tail]
        literal = self.structure.literal[head : len(tokens) - tail]
        ids = np.where(middle == OPEN, self._fill, middle)
        canvas.replace(start, stop, ids, middle == OPEN, literal)
        self._open = tokens == OPEN
        canvas.window = self._window(canvas, canvas.window.start)

    # --- schedule

    def first(self, canvas: Canvas) -> range:
        """See `ScheduleSession`. Never empty."""
        return self._window(canvas, canvas.decided_to if self._open.any() else canvas.first)

    def following(self, canvas: Canvas, _stats: Stats | None) -> range:
        """The next part with anything open in it."""
        return self._window(canvas, canvas.decided_to) if self._open.any() else range(0)

    def _window(self, canvas: Canvas, start: int) -> range:
        """From `start`, as far as is written at once."""
        if self._traits.attention == "block_causal":
            stop = (start // self._traits.block + 1) * self._traits.block
        else:
            stop = start + self._width if self._width else canvas.length
        return range(min(start, canvas.length), min(stop, canvas.length))


def same_at_end(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """How many of the last numbers are alike."""
    shorter = min(len(one), len(other))
    if not shorter:
        return 0
    differs = one[len(one) - shorter :] != other[len(other) - shorter :]
    return shorter if not differs.any() else int(differs[::-1].argmax())
