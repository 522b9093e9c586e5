"""Policies that edit written tokens when the prediction changes (LLaDA2.1, LLaDA2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas, Slots
from weft.decoding.diffusion.policies.ranking import confident_rows
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats, reaches


@dataclass(frozen=True, slots=True)
class TokenEditPolicy:
    """LLaDA2.1's joint decoding: masks to tokens, and tokens to tokens, in one pass.

    Open slots whose confidence reaches `write` are written, the surest at least. Written slots of
    the window whose likeliest token is another one, with a probability that reaches `edit`, are
    overwritten. Once no slot is open, up to `reviews` more passes edit until one finds nothing.

    `edit` None: no edits. 0.0 edits every token that is not the likeliest; other engines read 0 as
    off.
    """

    write: float = 0.7
    edit: float | None = 0.5
    reviews: int = 16

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset() if self.edit is None else frozenset({"decided"})

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _TokenEditSession:
        return _TokenEditSession(self)

    def most_forwards(self, slots: int) -> int:
        return slots if self.edit is None else slots + self.reviews


class _TokenEditSession:
    def __init__(self, settings: TokenEditPolicy) -> None:
        self._settings = settings
        self._block, self._reviews = -1, 0

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._reviews = canvas.block, self._settings.reviews
        chosen = confident_rows(stats, self._settings.write)
        commit = SlotTokens.of(stats.slots[chosen], drawn.ids[chosen])
        if self._settings.edit is None:
            return Action(commit=commit)
        changed = _changed(stats, canvas, self._settings.edit)
        edit = SlotTokens.of(stats.slots[changed], stats.top_ids[changed, 0])
        if stats.open.any():
            return Action(commit=commit, edit=edit, again=self._reviews > 0)
        self._reviews -= 1
        return Action(edit=edit, again=len(edit) > 0 and self._reviews > 0)


def _changed(stats: Stats, canvas: Canvas, threshold: float) -> Bits:
    """[slots]: written slots of the window whose likeliest token is another, above `threshold`."""
    inside = (stats.slots >= canvas.window.start) & (stats.slots < canvas.window.stop)
    written = inside & ~canvas.undecided[stats.slots] & ~canvas.frozen[stats.slots]
    other = stats.top_ids[:, 0] != canvas.ids[stats.slots]
    changed: Bits = written & other & reaches(stats.confidence, threshold)
    return changed


@dataclass(frozen=True, slots=True)
class IndelPolicy:
    """Editing with insertion and deletion (LLaDA2.2), for models with such control tokens.

    Open slots are written as in `TokenEditPolicy`. A written slot follows its likeliest token where
    the probability reaches `edit`: `keep` or the token itself leaves it, `delete` removes it,
    `insert` opens one before it, any other token replaces it. The window keeps its length: it is
    filled up with open slots, and an insert needs an open slot or an end token at its end. Windows
    with literals are not shifted. Control tokens are never written.

    At most `budget` edits a window, and none in a state of the window that occurred before.
    """

    keep: int
    delete: int
    insert: int
    write: float = 0.7
    edit: float = 0.5
    budget: int = 64
    reviews: int = 16
    needs: frozenset[Need] = frozenset({"decided"})

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _IndelSession:
        return _IndelSession(self, traits)

    def most_forwards(self, slots: int) -> int:
        # each delete opens a slot that must be written
        return slots + self.budget + self.reviews


class _IndelSession:
    def __init__(self, settings: IndelPolicy, traits: ModelTraits) -> None:
        self._settings, self._ends = settings, traits.end_ids
        self._controls = np.array([settings.keep, settings.delete, settings.insert])
        self._block, self._budget, self._reviews = -1, 0, 0
        self._states: set[bytes] = set()

    def adjust(
        self, logits: NDArray[np.float32], slots: Slots, canvas: Canvas
    ) -> NDArray[np.float32]:
        allowed = logits.copy()
        open_rows = np.flatnonzero(canvas.undecided[slots])
        allowed[open_rows[:, None], self._controls] = -np.inf
        return allowed

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._states = canvas.block, set()
            self._budget, self._reviews = self._settings.budget, self._settings.reviews
        chosen = confident_rows(stats, self._settings.write)
        commit = SlotTokens.of(stats.slots[chosen], drawn.ids[chosen])
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
        """Whether this state of the window is new, so that edits cannot cycle."""
        window = slice(canvas.window.start, canvas.window.stop)
        state = canvas.ids[window].tobytes() + canvas.undecided[window].tobytes()
        new = state not in self._states
        self._states.add(state)
        return new

    def _edits(self, stats: Stats, canvas: Canvas) -> Action:
        settings, likeliest = self._settings, stats.top_ids[:, 0]
        changed = _changed(stats, canvas, settings.edit)
        replaced = changed & ~np.isin(likeliest, self._controls)
        edit = self._paid(stats.slots, replaced)
        shifts = not canvas.frozen[canvas.window.start : canvas.window.stop].any()
        deleted = self._paid(stats.slots, changed & (likeliest == settings.delete) & shifts)
        opened = self._paid(stats.slots, changed & (likeliest == settings.insert) & shifts)
        opened = opened[: self._room(canvas, opened)]
        return Action(
            edit=SlotTokens.of(edit, likeliest[stats.rows(edit)]),
            # a removed slot is replaced by an open one behind the window
            delete=np.concatenate([deleted, canvas.window.stop - 1 - np.arange(len(opened))]),
            insert=np.concatenate([opened, np.full(len(deleted), canvas.window.stop)]),
        )

    def _paid(self, slots: Slots, wanted: Bits) -> Slots:
        """The wanted slots that the budget covers; charges it."""
        paid = slots[wanted][: self._budget]
        self._budget -= len(paid)
        return paid

    def _room(self, canvas: Canvas, opened: Slots) -> int:
        """How many slots at the window's end may be pushed out, right of the opened ones."""
        room = 0
        for slot in reversed(range(int(opened[-1]) + 1 if len(opened) else 0, canvas.window.stop)):
            if not canvas.undecided[slot] and int(canvas.ids[slot]) not in self._ends:
                break
            room += 1
        return room


def _shifted_out(commit: SlotTokens, taken: Slots) -> SlotTokens:
    """`commit` without slots that the same action removes."""
    return commit.at(~np.isin(commit.slots, taken))
