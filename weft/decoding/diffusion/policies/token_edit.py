"""Write, and overwrite what was written when the model changes its mind (token editing).

Knows no control tokens: slots are neither inserted nor deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.action import NOTHING, Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import surest
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class TokenEdit:
    """LLaDA2.1's joint decoding: masks to tokens, and tokens to tokens, in one pass.

    Open slots whose confidence reaches `write` are written, the surest at least. Written slots of
    the window whose likeliest token is another one, with a probability that reaches `edit`, are
    overwritten. Once no slot is open, up to `reviews` more passes edit until one finds nothing.

    `edit` None: nothing is ever edited. 0.0 edits whatever is not the likeliest: other engines
    read 0 as off, this one never does.
    """

    write: float = 0.7
    edit: float | None = 0.5
    reviews: int = 16

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset() if self.edit is None else frozenset({"decided"})

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Editing:
        return _Editing(self)

    def most_forwards(self, slots: int) -> int:
        return slots if self.edit is None else slots + self.reviews


class _Editing:
    def __init__(self, settings: TokenEdit) -> None:
        self._settings = settings
        self._block, self._reviews = -1, 0

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        if canvas.block != self._block:
            self._block, self._reviews = canvas.block, self._settings.reviews
        chosen = stats.open & reaches(stats.confidence, self._settings.write)
        if not chosen.any():
            chosen = surest(stats, 1)
        commit = Writing.of(stats.slots[chosen], drawn.ids[chosen])
        if self._settings.edit is None:
            return Action(commit=commit)
        edit = self._edits(stats, canvas, self._settings.edit)
        if stats.open.any():
            return Action(commit=commit, edit=edit, again=self._reviews > 0)
        self._reviews -= 1
        return Action(edit=edit, again=len(edit) > 0 and self._reviews > 0)

    def _edits(self, stats: Stats, canvas: Canvas, threshold: float) -> Writing:
        likeliest = stats.top_ids[:, 0]
        other = likeliest != canvas.ids[stats.slots]
        decided = ~canvas.undecided[stats.slots] & ~canvas.frozen[stats.slots]
        inside = stats.slots >= canvas.window.start
        inside &= stats.slots < canvas.window.stop
        changed = other & decided & inside & reaches(stats.confidence, threshold)
        if not changed.any():
            return NOTHING
        return Writing.of(stats.slots[changed], likeliest[changed])
