"""The changes that a commit policy proposes for a canvas after one pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.query import Query, SoftSlots


@dataclass(frozen=True, slots=True, eq=False)
class SlotTokens:
    """Tokens for slots, ascending: both [slots]."""

    slots: Slots
    ids: NDArray[np.int64]

    @classmethod
    def of(cls, slots: ArrayLike, ids: ArrayLike) -> SlotTokens:
        """From pairs in any order. Raises: `ValueError` for unequal lengths."""
        at, tokens = np.asarray(slots, dtype=np.int64), np.asarray(ids, dtype=np.int64)
        if at.shape != tokens.shape:
            raise ValueError(f"{len(at)} slots and {len(tokens)} tokens")
        order = np.argsort(at, kind="stable")
        return cls(at[order], tokens[order])

    def __len__(self) -> int:
        return len(self.slots)

    def at(self, kept: NDArray[np.bool_]) -> SlotTokens:
        """Only where `kept` [slots]."""
        return SlotTokens(self.slots[kept], self.ids[kept])


NOTHING = SlotTokens(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """Changes to a canvas, in this order: remask, edit, commit, renoise, inserts and deletes.

    commit    decides undecided slots of the window
    edit      writes other tokens into decided slots of the answer
    remask    opens decided slots of the answer
    renoise   replaces the content of undecided slots
    delete    slots that are removed; `insert` opens one before each of its slots
    soft      how slots are read in the next pass
    probes    queries to ask before the decision: `ProbingSession.probed` gets the answers
    again     the window stays, even without a commit
    """

    commit: SlotTokens = NOTHING
    edit: SlotTokens = NOTHING
    remask: Slots = field(default_factory=lambda: NOTHING.slots)
    renoise: SlotTokens = NOTHING
    delete: Slots = field(default_factory=lambda: NOTHING.slots)
    insert: Slots = field(default_factory=lambda: NOTHING.slots)
    soft: SoftSlots | None = None
    probes: tuple[Query, ...] = ()
    again: bool = False

    @property
    def progresses(self) -> bool:
        """Whether it changes the canvas or keeps the window."""
        changed = (self.commit, self.edit, self.remask, self.renoise, self.delete, self.insert)
        return self.again or any(len(part) for part in changed)

    @property
    def only_commits(self) -> Action:
        """Its commits alone, without the changes that could repeat for ever."""
        return Action(commit=self.commit)

    def committing(self, commit: SlotTokens) -> Action:
        """The same action with other commits."""
        return replace(self, commit=commit)

    def perform(self, canvas: Canvas, fill: int) -> None:
        """Apply it. `fill` is the content of an opened slot. Raises: `ValueError`, see `Canvas`."""
        canvas.remask(self.remask, fill)
        canvas.edit(self.edit.slots, self.edit.ids)
        canvas.commit(self.commit.slots, self.commit.ids)
        canvas.renoise(self.renoise.slots, self.renoise.ids)
        moves = [(int(slot), False) for slot in self.delete]
        moves += [(int(slot), True) for slot in self.insert]
        for slot, opens in sorted(moves, reverse=True):  # from the right: the others stay in place
            if opens:
                canvas.insert(slot, 1, fill)
            else:
                canvas.delete(slot)
