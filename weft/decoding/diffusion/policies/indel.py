"""Write, overwrite, take out and open slots, by control tokens of the model (LLaDA2.2).

Knows no tokenizer: which ids mean keep, delete and insert is told to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import NOTHING, Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.ranking import surest
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Indel:
    """Editing with insertion and deletion (LLaDA2.2), for models with such control tokens.

    Open slots are written as in `TokenEdit`. Of a written slot the likeliest token decides, where
    its probability reaches `edit`: `keep` or the token itself leaves it, `delete` takes the slot
    out, `insert` opens one before it, any other token replaces it. The window keeps its length: it
    is filled up with open slots, and an insert needs an open slot or an end token at its end.
    Windows with literals are not shifted. Control tokens are never written.

    At most `budget` edits a window, and none after a state of the window that was seen before.
    """

    keep: int
    delete: int
    insert: int
    write: float = 0.7
    edit: float = 0.5
    budget: int = 64
    reviews: int = 16
    needs: frozenset[Need] = frozenset({"decided"})

    def begin(self, _canvas: Canvas, traits: Traits) -> _Shifting:
        return _Shifting(self, traits)

    def most_forwards(self, slots: int) -> int:
        # each delete opens a slot that has to be written
        return slots + self.budget + self.reviews


class _Shifting:
    def __init__(self, settings: Indel, traits: Traits) -> None:
        self._settings, self._ends = settings, traits.end_ids
        self._controls = np.array([settings.keep, settings.delete, settings.insert])
        self._block, self._budget, self._reviews = -1, 0, 0
        self._seen: set[bytes] = set()

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        allowed = logits.copy()
        open_rows = np.flatnonzero(canvas.undecided[slots])
        allowed[open_rows[:, None], self._controls] = -np.inf
        return allowed

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._seen = canvas.block, set()
            self._budget, self._reviews = self._settings.budget, self._settings.reviews
        chosen = stats.open & reaches(stats.confidence, self._settings.write)
        if not chosen.any():
            chosen = surest(stats, 1)
        commit = Writing.of(stats.slots[chosen], drawn.ids[chosen])
        edits = self._edits(stats, canvas) if self._fresh(canvas) else Action()
        if not stats.open.any():
            self._reviews -= 1
            edited = len(edits.edit) + len(edits.delete) + len(edits.insert) > 0
            again = edited and self._reviews > 0
        else:
            again = self._reviews > 0
        return Action(
            commit=_shifted_out(commit, edits.delete),
            edit=edits.edit,
            delete=edits.delete,
            insert=edits.insert,
            again=again,
        )

    def _fresh(self, canvas: Canvas) -> bool:
        """Whether this state of the window is new, so that editing it cannot go round."""
        window = slice(canvas.window.start, canvas.window.stop)
        state = canvas.ids[window].tobytes() + canvas.undecided[window].tobytes()
        new = state not in self._seen
        self._seen.add(state)
        return new

    def _edits(self, stats: Stats, canvas: Canvas) -> Action:
        rules, likeliest = self._settings, stats.top_ids[:, 0]
        inside = (stats.slots >= canvas.window.start) & (stats.slots < canvas.window.stop)
        mine = inside & ~canvas.undecided[stats.slots] & ~canvas.frozen[stats.slots]
        mine &= reaches(stats.confidence, rules.edit) & (likeliest != canvas.ids[stats.slots])
        replaced = mine & ~np.isin(likeliest, self._controls)
        edit = self._paid(stats.slots, replaced)
        shifts = not canvas.frozen[canvas.window.start : canvas.window.stop].any()
        deleted = self._paid(stats.slots, mine & (likeliest == rules.delete) & shifts)
        opened = self._paid(stats.slots, mine & (likeliest == rules.insert) & shifts)
        opened = opened[: self._room(canvas, opened)]
        return Action(
            edit=Writing.of(edit, likeliest[stats.rows(edit)]) if len(edit) else NOTHING,
            # what is taken out is opened behind the window, and moves into it
            delete=np.concatenate([deleted, canvas.window.stop - 1 - np.arange(len(opened))]),
            insert=np.concatenate([opened, np.full(len(deleted), canvas.window.stop)]),
        )

    def _paid(self, slots: Slots, wanted: Bits) -> Slots:
        """The slots wanted, as far as the budget goes, which is charged."""
        paid = slots[wanted][: self._budget]
        self._budget -= len(paid)
        return paid

    def _room(self, canvas: Canvas, opened: Slots) -> int:
        """How many slots at the window's end may be pushed out, right of those to be opened."""
        room = 0
        for slot in reversed(range(int(opened[-1]) + 1 if len(opened) else 0, canvas.window.stop)):
            if not canvas.undecided[slot] and int(canvas.ids[slot]) not in self._ends:
                break
            room += 1
        return room


def _shifted_out(commit: Writing, taken: Slots) -> Writing:
    """Without slots that the same action takes out."""
    return commit.at(~np.isin(commit.slots, taken))
