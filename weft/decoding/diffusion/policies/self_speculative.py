"""Draft a window from one pass, and verify one-by-one writing of it in one batched pass.

Draft and verdict are predictions of the same model, of canvases written further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.caches.tracking import front, reach
from weft.decoding.diffusion.canvas import Canvas, Slots
from weft.decoding.diffusion.policies.ranking import Score, rank_rows, score_of
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.query import Query
from weft.decoding.diffusion.stats import ProbeAnswer, SampledTokens, Stats
from weft.decoding.diffusion.stops import decided_ends

Step = tuple[int, int]
"""A slot and its token."""


@dataclass(frozen=True, slots=True)
class SelfSpeculativePolicy:
    """Self-speculative decoding of masked diffusion (SSD, Gao et al. 2025).

    One pass predicts all open slots of a window. They are put into the order in which one slot a
    pass would be written by `order`, as far as can be told yet, and one batched pass reads the
    canvases that this would lead to, at most `rows` of them. What one-by-one writing does is then
    known up to the first canvas whose next step is not the one drafted, that step included; the
    next draft begins there.

    Lossless: with an exact cache and an order that looks at predictions only, the text is that of
    `FixedPacePolicy(EveryStep(1), order)` with the same chance, token by token, at any temperature,
    because a slot draws with the same number in every canvas. A batched pass counts as one forward;
    it reads up to `rows` times the tokens, which `DenoisingCounters.tokens` tells.
    """

    order: Score = "leftmost"
    rows: int = 16
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if self.rows < 1 or self.order == "random":
            raise ValueError(f"no speculation in {self.order} order with {self.rows} rows")

    def begin(self, _canvas: Canvas, traits: ModelTraits) -> _SelfSpeculativeSession:
        return _SelfSpeculativeSession(self, traits)

    def most_forwards(self, slots: int) -> int:
        return 2 * slots  # every pass of whatever kind writes a slot


class _SelfSpeculativeSession:
    def __init__(self, settings: SelfSpeculativePolicy, traits: ModelTraits) -> None:
        self._settings, self._traits = settings, traits
        self._settled: list[Step] = []
        self._draft: list[Step] = []

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if not stats.open.any():
            return Action()
        self._settled = []
        return self._go_on(stats, drawn, canvas)

    def looked(self, answers: Sequence[ProbeAnswer], canvas: Canvas) -> Action:
        """Which drafted steps are those of one-by-one writing."""
        at = 0  # of the canvas that one-by-one writing comes to
        while at + 1 < len(answers) and self._next(answers[at]) == self._draft[at + 1]:
            at += 1
            self._settled.append(self._draft[at])
        return self._go_on(answers[at].stats, answers[at].drawn, canvas)

    def _next(self, answer: ProbeAnswer) -> Step:
        return self._steps(answer.stats, answer.drawn)[0]

    def _go_on(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        """Take the next step of one-by-one writing, and draft those behind it."""
        self._draft = self._steps(stats, drawn)
        self._settled.append(self._draft[0])
        if len(self._draft) == 1 or self._ends(canvas):
            return Action(commit=SlotTokens.of(*zip(*self._settled, strict=True)))
        chain = self._settled + self._draft[1:]
        least = len(self._settled)
        most = min(len(chain) - 1, least + self._settings.rows - 1)
        return Action(look=tuple(self._query(canvas, chain[:n]) for n in range(least, most + 1)))

    def _steps(self, stats: Stats, drawn: SampledTokens) -> list[Step]:
        """All open slots in order."""
        rows = rank_rows(score_of(self._settings.order, stats, drawn), stats.open)
        return [(int(stats.slots[row]), int(drawn.ids[row])) for row in rows]

    def _ends(self, canvas: Canvas) -> bool:
        """Whether the text is over after the settled steps, and the rest is not worth a pass."""
        supposed = canvas.supposing(*zip(*self._settled, strict=True))
        ends = decided_ends(supposed, np.array(sorted(self._traits.end_ids)))
        return len(ends) > 0 and bool(ends[0] < supposed.decided_to)

    def _query(self, canvas: Canvas, steps: Sequence[Step]) -> Query:
        supposed = canvas.supposing(*zip(*steps, strict=True))
        return Query(
            supposed,
            self._feed(supposed),
            supposed.open,
            reach(supposed, self._traits),
            scratch=True,
            kind="look",
        )

    def _feed(self, canvas: Canvas) -> Slots:
        """All that depends on what the window holds."""
        start = 0 if self._traits.attention == "full" else front(canvas, self._traits)
        return np.arange(start, reach(canvas, self._traits), dtype=np.int64)
