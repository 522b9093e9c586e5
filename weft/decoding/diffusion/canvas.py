"""The text of one request while it is written in any order: its slots and their state.

Only the model reads the content of an undecided slot: a mask or noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Slots = NDArray[np.int64]
Bits = NDArray[np.bool_]
_ARRAYS: Final = ("ids", "ours", "undecided", "frozen", "visits")


class Canvas:
    """Slots are numbered from the prompt's first, without padding: a slot is a position.

    row        of the adapter's cache
    first      the slot after the prompt
    limit      maximum number of slots
    ids        [slots]; an undecided slot holds the model's mask, or noise: `undecided` alone says
               which are
    ours       [slots] those of the answer, its literals included
    undecided  [slots] those of ours that hold no token yet
    frozen     [slots] the prompt and the literals: never written
    visits     [slots] how often a slot was opened again
    window     the slots that may be written now; empty: none is left
    block      number of windows left behind; `step` counts proposals, `step_in_block` those since
    released   slots before it may be shown: decided, reviewed, written no more
    """

    def __init__(
        self,
        prompt: Sequence[int],
        length: int,
        fill: int,
        *,
        row: int = 0,
        limit: int = 0,
        literals: Mapping[int, int] | None = None,
    ) -> None:
        """`length` open slots after the prompt. `literals` by slot of the answer, from 0.

        Raises: `ValueError` for a literal outside of the answer.
        """
        self.row = row
        self.first = len(prompt)
        self.limit = max(limit, self.first + length)
        self.ids = np.array([*prompt, *[fill] * length], dtype=np.int64)
        self.ours = np.arange(len(self.ids)) >= self.first
        self.undecided = self.ours.copy()
        self.frozen = ~self.ours
        self.visits = np.zeros(len(self.ids), dtype=np.int64)
        self.window = range(self.first, self.first)
        self.block = self.step = self.step_in_block = 0
        self.released = self.first
        for slot, token in (literals or {}).items():
            if not 0 <= slot < length:
                raise ValueError(f"no slot {slot} in an answer of {length}")
            self.ids[self.first + slot] = token
            self.undecided[self.first + slot] = False
            self.frozen[self.first + slot] = True

    @property
    def length(self) -> int:
        """Slots, the prompt's included."""
        return len(self.ids)

    @property
    def open(self) -> Slots:
        """The undecided slots of the window, ascending."""
        inside = self.undecided[self.window.start : self.window.stop]
        return np.flatnonzero(inside) + self.window.start

    @property
    def decided_to(self) -> int:
        """The first undecided slot, or the end."""
        return int(self.undecided.argmax()) if self.undecided.any() else self.length

    def commit(self, slots: ArrayLike, ids: ArrayLike) -> None:
        """Decide slots. Raises: `ValueError` where one is decided already."""
        at = np.asarray(slots, dtype=np.int64)
        if not self.undecided[at].all():
            raise ValueError(f"slots {at[~self.undecided[at]].tolist()} are decided")
        self.ids[at] = ids
        self.undecided[at] = False

    def edit(self, slots: ArrayLike, ids: ArrayLike) -> None:
        """Write other tokens into decided slots. Raises: `ValueError` for frozen or open ones."""
        at = self._ours_decided(slots)
        self.ids[at] = ids

    def remask(self, slots: ArrayLike, fill: int) -> None:
        """Open decided slots again. Raises: `ValueError` for frozen or open ones."""
        at = self._ours_decided(slots)
        self.ids[at] = fill
        self.undecided[at] = True
        self.visits[at] += 1

    def renoise(self, slots: ArrayLike, ids: ArrayLike) -> None:
        """Replace the content of undecided slots. Raises: `ValueError` where one is decided."""
        at = np.asarray(slots, dtype=np.int64)
        if not self.undecided[at].all():
            raise ValueError(f"slots {at[~self.undecided[at]].tolist()} are decided")
        self.ids[at] = ids
        self.visits[at] += 1

    def grow(self, count: int, fill: int) -> int:
        """Append open slots, at most to `limit`; returns how many were added."""
        more = max(0, min(count, self.limit - self.length))
        self.insert(self.length, more, fill)
        return more

    def insert(self, slot: int, count: int, fill: int) -> None:
        """Open `count` slots before `slot` of the answer; what follows moves right."""
        at = [slot] * count
        self.ids = np.insert(self.ids, at, fill)
        self.ours = np.insert(self.ours, at, values=True)
        self.undecided = np.insert(self.undecided, at, values=True)
        self.frozen = np.insert(self.frozen, at, values=False)
        self.visits = np.insert(self.visits, at, 0)

    def delete(self, slot: int) -> None:
        """Remove a slot of the answer; what follows moves left. Raises: `ValueError` if frozen."""
        if self.frozen[slot]:
            raise ValueError(f"slot {slot} is frozen")
        for name in _ARRAYS:
            setattr(self, name, np.delete(getattr(self, name), slot))

    def trim(self, length: int) -> None:
        """Drop the slots from `length` on. Raises: `ValueError` for a part of the prompt."""
        if length < self.first:
            raise ValueError(f"{length} slots would cut the prompt of {self.first}")
        for name in _ARRAYS:
            setattr(self, name, getattr(self, name)[:length])
        self.window = range(min(self.window.start, length), min(self.window.stop, length))

    def replace(
        self, start: int, stop: int, ids: ArrayLike, undecided: ArrayLike, frozen: ArrayLike
    ) -> None:
        """Replace the slots from `start` to `stop` of the answer; the arrays have one length.
        Raises: `ValueError` for a slot of the prompt.
        """
        if start < self.first:
            raise ValueError(f"slot {start} is part of the prompt of {self.first}")
        tokens = np.asarray(ids, dtype=np.int64)
        news: dict[str, NDArray[np.generic]] = {
            "ids": tokens,
            "ours": np.ones(len(tokens), dtype=np.bool_),
            "undecided": np.asarray(undecided, dtype=np.bool_),
            "frozen": np.asarray(frozen, dtype=np.bool_),
            "visits": np.zeros(len(tokens), dtype=np.int64),
        }
        for name, new in news.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old[:start], new, old[stop:]]))

    def supposing(self, slots: ArrayLike, ids: ArrayLike) -> Canvas:
        """A copy that shares nothing, with these open slots decided. Raises: as `commit`."""
        other = copy(self)
        for name in _ARRAYS:
            setattr(other, name, getattr(self, name).copy())
        other.commit(slots, ids)
        return other

    def _ours_decided(self, slots: ArrayLike) -> Slots:
        at = np.asarray(slots, dtype=np.int64)
        wrong = self.frozen[at] | self.undecided[at]
        if wrong.any():
            raise ValueError(f"slots {at[wrong].tolist()} are frozen or undecided")
        return at
