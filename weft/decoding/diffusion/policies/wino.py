"""Draft widely, and take back what all the other slots do not expect (WINO).

Knows no schedule. Every pass reads a second, masked copy of what it wrote, and checks with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policies.ranking import surest
from weft.decoding.diffusion.policies.shadows import expected, written
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class Wino:
    """Wide-in, narrow-out (Hong et al. 2025).

    Slots whose confidence reaches `draft` are written: at most `share` of the open ones, but that
    cap is no less than `few` and no more than `many`. Written slots of the window are predicted
    through shadows, which see all but the slot itself, and opened again below `verify`: always
    fewer than were written in this pass, so that it ends. What the last pass of a window writes is
    not verified.
    """

    draft: float = 0.6
    verify: float = 0.9
    share: float = 0.7
    few: int = 5
    many: int = 20
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Wide:
        return _Wide(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Wide:
    def __init__(self, settings: Wino) -> None:
        self._settings = settings

    def shadows(self, canvas: Canvas) -> Slots:
        return written(canvas)

    def propose(self, stats: Stats, drawn: Drawn, canvas: Canvas) -> Action:
        rules = self._settings
        open_slots = int(stats.open.sum())
        cap = int(min(max(rules.share * open_slots, rules.few), rules.many))
        # of the surest `cap`, those that pass; one at least
        chosen = surest(stats, cap) & reaches(stats.confidence, rules.draft)
        if not chosen.any():
            chosen = surest(stats, 1)
        return Action(
            commit=Writing.of(stats.slots[chosen], drawn.ids[chosen]),
            remask=self._doubted(stats, canvas, int(chosen.sum()) - 1),
        )

    def _doubted(self, stats: Stats, canvas: Canvas, most: int) -> Slots:
        """At most `most` of the written slots, the least expected first."""
        slots, p = expected(stats, canvas)
        doubted = ~reaches(p, self._settings.verify)
        order = np.argsort(p, kind="stable")
        return np.sort(slots[order][doubted[order]][: max(0, most)])
