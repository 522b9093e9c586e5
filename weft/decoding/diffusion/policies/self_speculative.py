"""Self-speculation: draft a window from one pass, verify it against one-by-one decoding in a batch.

Drafts and verdicts are predictions of the same model, for canvases with more slots decided.
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

    One pass predicts all open slots of a window. They are sorted into the expected order of
    one-by-one decoding by `order`, and one batched pass reads the canvases that this would lead to,
    at most `rows` of them. This verifies the steps up to the first canvas whose next step is not
    the drafted one, that step included; the next draft begins there.

    Lossless: with an exact cache and an order that depends on predictions only, the text equals
    that of `FixedPacePolicy(EveryStep(1), order)` with the same random numbers, token by token, at
    any temperature, because a slot uses the same number in every canvas. A batched pass counts as
    one forward; it reads up to `rows` times the tokens (`DenoisingCounters.tokens`).
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
        return 2 * slots  # every pass of either kind writes a slot


class _SelfSpeculativeSession:
    def __init__(self, settings: SelfSpeculativePolicy, traits: ModelTraits) -> None:
        self._settings, self._traits = settings, traits
        self._settled: list[Step] = []
        self._draft: list[Step] = []

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        if not stats.open.any():
            return Action()
        self._settled = []
        return self._continue(stats, drawn, canvas)

    def probed(self, answers: Sequence[ProbeAnswer], canvas: Canvas) -> Action:
        """Settle the drafted steps that one-by-one decoding confirms, and continue from there."""
        at = 0  # the canvas that one-by-one decoding reaches
        while at + 1 < len(answers) and self._next(answers[at]) == self._draft[at + 1]:
            at += 1
            self._settled.append(self._draft[at])
        return self._continue(answers[at].stats, answers[at].drawn, canvas)

    def _next(self, answer: ProbeAnswer) -> Step:
        return self._steps(answer.stats, answer.drawn)[0]

    def _continue(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        """Take the next step of one-by-one decoding, and draft those after it."""
        self._draft = self._steps(stats, drawn)
        self._settled.append(self._draft[0])
        if len(self._draft) == 1 or self._ends(canvas):
            return Action(commit=SlotTokens.of(*zip(*self._settled, strict=True)))
        chain = self._settled + self._draft[1:]
        least = len(self._settled)
        most = min(len(chain) - 1, least + self._settings.rows - 1)
        return Action(probes=tuple(self._query(canvas, chain[:n]) for n in range(least, most + 1)))

    def _steps(self, stats: Stats, drawn: SampledTokens) -> list[Step]:
        """All open slots in order."""
        rows = rank_rows(score_of(self._settings.order, stats, drawn), stats.open)
        return [(int(stats.slots[row]), int(drawn.ids[row])) for row in rows]

    def _ends(self, canvas: Canvas) -> bool:
        """Whether the text ends with the settled steps, so that the rest needs no pass."""
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
        """All slots whose keys depend on the window."""
        start = 0 if self._traits.attention == "full" else front(canvas, self._traits)
        return np.arange(start, reach(canvas, self._traits), dtype=np.int64)
