"""A text is written again, as greedily as can be right: what the filter learns from.

In each pass all slots whose likeliest token is that of the first writing are decided; how sure the
model was, and where it was right, is noted. Knows no filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import ModelAdapter, Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.loop import denoised
from weft.decoding.diffusion.policies.learned import confidences
from weft.decoding.diffusion.policies.ranking import ranked
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats
from weft.decoding.diffusion.train.own_texts import Ids, OwnText, rows_of

_AT_ONCE: Final = 48


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Passes over windows, each as the filter sees it.

    confidences [looks, slots] of the likeliest tokens, one where nothing is open
    right       [looks, slots] whether that token is the final one
    open        [looks, slots] whether the slot is judged
    """

    confidences: NDArray[np.float32]
    right: NDArray[np.bool_]
    open: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.confidences)

    @property
    def learnt_tokens(self) -> int:
        """Slots that are judged."""
        return int(self.open.sum())

    def at(self, which: NDArray[np.int64]) -> Looks:
        """Some of them."""
        return Looks(self.confidences[which], self.right[which], self.open[which])


@dataclass(slots=True)
class Noted:
    """Where looks are gathered."""

    slots: int
    rows: list[tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]] = field(
        default_factory=list
    )

    @property
    def looks(self) -> Looks:
        """All of them, in order."""
        parts = zip(*self.rows, strict=True)
        return Looks(*(np.array(part) for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A commit policy that knows the outcome: `text` [slots of the canvas]."""

    text: Ids
    noted: Noted
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Replaying:
        return _Replaying(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Replaying:
    def __init__(self, settings: Replay) -> None:
        self._text, self._noted = settings.text, settings.noted

    def propose(self, stats: Stats, _drawn: Drawn, canvas: Canvas) -> Action:
        right = stats.open & (stats.top_ids[:, 0] == self._text[stats.slots])
        self._note(stats, right, canvas)
        chosen = right
        if not right.any():  # otherwise it would look at the same canvas for ever
            chosen = np.zeros_like(right)
            chosen[ranked(stats.confidence, stats.open)[:1]] = True
        slots = stats.slots[chosen]
        return Action(commit=Writing.of(slots, self._text[slots]))

    def _note(self, stats: Stats, right: NDArray[np.bool_], canvas: Canvas) -> None:
        size = self._noted.slots
        places = stats.slots - canvas.window.start
        inside = places < size
        found = np.zeros((2, size), dtype=np.bool_)
        found[0, places[inside]] = right[inside]
        found[1, places[inside]] = stats.open[inside]
        sure = confidences(stats, canvas, size).astype(np.float32)
        self._noted.rows.append((sure, found[0], found[1]))


def replayed(
    adapter: ModelAdapter,
    texts: Sequence[OwnText],
    slots: int,
    on_text: Callable[[int], None],
    stop: Callable[[], bool],
) -> Looks | None:
    """Looks of `slots` each at all texts; None when `stop` said so."""
    noted = Noted(slots)
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        policies = [Replay(text.ids, noted) for text in some]
        rows = rows_of(adapter, [text.prompt for text in some], len(some[0].answer), policies)
        denoised(rows, adapter)
        on_text(first + len(some))
        if stop():
            return None
    return noted.looks
