"""A structure in the denoising loop: as guidance, verifier, schedule and stop of one canvas.

Slots move while an answer is laid out, so it also chooses an exact cache.
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
    """Settings and sessions of one structure on one canvas: guidance, verifier, schedule and stop.
    `window` slots are written at once where attention is full; 0: all.
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
        """The slots admitted last, in order of admission, which their meaning may depend on."""

    def canvas(self, prompt: Sequence[int], *, row: int = 0) -> Canvas:
        """The initial canvas: the structure after `prompt`."""
        tokens = np.array(self.structure.tokens, dtype=np.int64)
        decided = {int(slot): int(tokens[slot]) for slot in np.flatnonzero(tokens != OPEN)}
        self._open = tokens == OPEN
        return Canvas(prompt, len(tokens), self._fill, row=row, literals=decided)

    def configure(self, config: DecoderConfig) -> DecoderConfig:
        """`config` for this structure: with its parts, and a cache that is exact as slots move."""
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
        """Itself: it serves one canvas."""
        return self

    # --- guidance

    def asks(self, _query: Query) -> Query | None:
        """No query."""
        return None

    def guided(
        self,
        logits: NDArray[np.float32],
        slots: Slots,
        _answer: NDArray[np.float32] | None,
        canvas: Canvas,
    ) -> NDArray[np.float32]:
        """Set tokens that do not fit an open slot to -inf."""
        out = logits.copy()
        for row, slot in enumerate((slots - canvas.first).tolist()):
            if self._open[slot]:
                out[row] = self.structure.restrict(slot, logits[row])
        return out

    # --- verifier

    def verified(
        self, action: Action, stats: Stats, drawn: SampledTokens, canvas: Canvas
    ) -> Action:
        """The commits that fit, the surest first; without any, the leftmost open slot."""
        slots, ids = action.commit.slots, action.commit.ids
        rows = stats.rows(slots)
        order = np.argsort(-np.where(drawn.ids[rows] == ids, drawn.p[rows], 0.0), kind="stable")
        places = (slots[order] - canvas.first).tolist()
        fine = np.array(self.structure.admitted(places, ids[order].tolist()), dtype=np.bool_)
        admitted = order[fine] if len(order) else order
        self._order = (slots[admitted] - canvas.first).tolist()
        if len(admitted):
            commit = SlotTokens.of(slots[admitted], ids[admitted])
        else:
            first = np.flatnonzero(stats.open)[:1]
            commit = SlotTokens.of(stats.slots[first], drawn.ids[first])
        return Action(commit=commit, renoise=action.renoise, soft=action.soft)

    # --- stop

    def ended(self, canvas: Canvas, _stats: Stats) -> int | None:
        """Lay out the canvas again after commits; its end, when all is written."""
        new = np.flatnonzero(self._open & ~canvas.undecided[canvas.first :]).tolist()
        if len(new) > 1:
            new = self._order
        self.structure.write(new, [int(canvas.ids[canvas.first + slot]) for slot in new])
        self._lay(canvas)
        return canvas.length if self.structure.over else None

    def _lay(self, canvas: Canvas) -> None:
        """Replaces only what has changed: open slots may contain noise."""
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
        """The next window with an open slot."""
        return self._window(canvas, canvas.decided_to) if self._open.any() else range(0)

    def _window(self, canvas: Canvas, start: int) -> range:
        """The slots from `start` that are written at once."""
        if self._traits.attention == "block_causal":
            stop = (start // self._traits.block + 1) * self._traits.block
        else:
            stop = start + self._width if self._width else canvas.length
        return range(min(start, canvas.length), min(stop, canvas.length))


def same_at_end(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """The length of the common suffix."""
    shorter = min(len(one), len(other))
    if not shorter:
        return 0
    differs = one[len(one) - shorter :] != other[len(other) - shorter :]
    return shorter if not differs.any() else int(differs[::-1].argmax())
