"""What of a proposal is carried out: as verifiers let it through, in time, and something at least.

Does not carry it out.
"""

from __future__ import annotations

import numpy as np

from weft.decoding.diffusion.action import Action, Writing
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.counters import Counters
from weft.decoding.diffusion.plugs import Plugs
from weft.decoding.diffusion.stats import Drawn, Stats


class Allowing:
    """Stands between the proposals for one canvas and the canvas. `bounded` begins a block."""

    def __init__(self, canvas: Canvas, plugs: Plugs, traits: Traits, counters: Counters) -> None:
        self._canvas, self._commit, self._counters = canvas, plugs.commit, counters
        self._verifying = [one.begin(canvas, traits) for one in plugs.verifiers]
        self._bound = 0

    def bounded(self) -> None:
        """From now on as many more proposals may take something back as the open slots need."""
        canvas = self._canvas
        self._bound = canvas.step_in_block + self._commit.most_forwards(len(canvas.open))

    def allowed(self, action: Action, stats: Stats, drawn: Drawn) -> Action:
        """The action after the verifiers, bounded, and with progress."""
        for verifying in self._verifying:
            before = verifying.passes
            action = verifying.verified(action, stats, drawn, self._canvas)
            self._counters.passes["supervisor"] += verifying.passes - before
        if self._canvas.step_in_block >= self._bound:
            action = action.only_commits
        if action.progresses or not stats.open.any():
            return action
        self._counters.forced += 1
        surest = np.flatnonzero(stats.open)[stats.confidence[stats.open].argmax()]
        return Action(commit=Writing.of(stats.slots[[surest]], drawn.ids[[surest]]))
