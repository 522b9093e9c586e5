"""Policies in which a pace, not the predictions, sets how many slots are written in a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.policies.ranking import (
    CommitRule,
    Score,
    at_step,
    commit,
    rank_rows,
    sample_rows,
    score_of,
)
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats


class PaceSession(Protocol):
    """The progress of a pace through one window."""

    def due(self, left: int) -> int:
        """The slots due in the next step, of `left` open ones: 1 to `left`."""


class CommitPace(Protocol):
    """Settings of a pace."""

    def begin(self, slots: int) -> PaceSession:
        """For a window with `slots` open slots."""

    def most_forwards(self, slots: int) -> int:
        """The most steps until all of them are due."""


@dataclass(frozen=True, slots=True)
class EveryStep:
    """The same `count` in each step."""

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"{self.count} slots a step")

    def begin(self, _slots: int) -> EveryStep:
        return self

    def due(self, left: int) -> int:
        return min(self.count, left)

    def most_forwards(self, slots: int) -> int:
        return -(-slots // self.count)


@dataclass(frozen=True, slots=True)
class EvenSteps:
    """All of a window in `steps` steps of equal size, the larger ones first (LLaDA)."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"{self.steps} steps")

    def begin(self, slots: int) -> _EvenStepsSession:
        share, more = divmod(slots, self.steps)
        return _EvenStepsSession(iter([share + (step < more) for step in range(self.steps)]))

    def most_forwards(self, slots: int) -> int:
        return min(self.steps, slots)


@dataclass(frozen=True, slots=True)
class _EvenStepsSession:
    parts: Iterator[int]

    def due(self, left: int) -> int:
        return min(left, max(1, next(self.parts, 1)))


@dataclass(frozen=True, slots=True)
class FadingPace:
    """Dream's: time falls evenly from 1 to `last` in `steps`, and from t to s the share 1 - s/t of
    the open slots is due, rounded down; all of them in the last step. `steps` 0: one for each slot.

    A step in which nothing is due is skipped, since the next prediction would be the same; with
    `least` 1 something is due in all of them.
    """

    steps: int = 0
    last: float = 1e-3
    least: int = 0

    def __post_init__(self) -> None:
        if self.steps < 0 or not 0.0 < self.last < 1.0 or self.least not in (0, 1):
            raise ValueError(f"no pace with {self}")

    def shares(self, slots: int) -> list[float]:
        """The share of each step, for a window with `slots` open slots."""
        times = np.linspace(1.0, self.last, (self.steps or max(1, slots)) + 1)
        return [*(1.0 - times[1:-1] / times[:-2]).tolist(), 1.0]

    def begin(self, slots: int) -> _FadingPaceSession:
        return _FadingPaceSession(iter(self.shares(slots)), self.least)

    def most_forwards(self, slots: int) -> int:
        return min(self.steps or slots, slots)


@dataclass(frozen=True, slots=True)
class _FadingPaceSession:
    shares: Iterator[float]
    least: int

    def due(self, left: int) -> int:
        for share in self.shares:
            count = max(int(left * share), self.least)
            if count:
                return count
        return left


class PacedSession:
    """Base of sessions with a pace: the slots due, block by block."""

    def __init__(self, pace: CommitPace, canvas: Canvas) -> None:
        self._pace = pace
        self._pacing = pace.begin(len(canvas.open))

    def due(self, stats: Stats, canvas: Canvas) -> int:
        """How many open slots are due in this step."""
        left = int(stats.open.sum())
        if canvas.step_in_block == 0:
            self._pacing = self._pace.begin(left)
        return self._pacing.due(left)


@dataclass(frozen=True, slots=True)
class FixedPacePolicy:
    """The best slots by a score, whatever their joint confidence: LLaDA (Nie et al. 2025) with
    `EvenSteps`, Dream (Ye et al. 2025) with `FadingPace`; one slot a step with `EveryStep(1)`.

    spread     above 0: slots are sampled with weights exp(score / spread), Dream's `alg_temp`
    ends_last  slots whose sample is a terminator come last
    """

    pace: CommitPace = field(default_factory=EveryStep)
    score: Score = "confidence"
    spread: float = 0.0
    ends_last: bool = False
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.spread < np.inf:
            raise ValueError(f"a spread of {self.spread}")

    def begin(self, canvas: Canvas, traits: ModelTraits) -> _FixedPaceSession:
        return _FixedPaceSession(self, canvas, traits)

    def most_forwards(self, slots: int) -> int:
        return self.pace.most_forwards(slots)


class _FixedPaceSession(PacedSession):
    def __init__(self, settings: FixedPacePolicy, canvas: Canvas, traits: ModelTraits) -> None:
        super().__init__(settings.pace, canvas)
        self._settings = settings
        self._ends = sorted(traits.end_ids)

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        settings, due = self._settings, self.due(stats, canvas)
        score = score_of(settings.score, stats, drawn)
        if settings.ends_last:
            # all scores of other tokens stay above, in their order
            late = np.isin(drawn.ids, self._ends)
            score = np.where(late, score - 2.0 * (1.0 + np.abs(score).max()), score)
        if settings.score == "random" or settings.spread:
            spread = settings.spread or 1.0
            rows = sample_rows(score, stats.open, due, spread, drawn.rng, canvas.step)
        else:
            rows = rank_rows(score, stats.open)[:due]
        return commit(stats, drawn, rows)


@dataclass(frozen=True, slots=True)
class AncestralPolicy:
    """Dream's `origin`, the sampling that masked diffusion is derived from: predictions decide
    neither which slots are written nor how many.

    Time falls evenly from 1 to `last`; from t to s each open slot is written with probability
    1 - s/t, in the last of `steps` with certainty. `steps` 0: one for each slot. A step in which no
    slot is written is skipped: the next prediction would be the same.
    """

    steps: int = 0
    last: float = 1e-3
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        FadingPace(self.steps, self.last)

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _AncestralSession:
        return _AncestralSession(FadingPace(self.steps, self.last))

    def most_forwards(self, slots: int) -> int:
        return min(self.steps or slots, slots)


class _AncestralSession:
    def __init__(self, pace: FadingPace) -> None:
        self._pace = pace
        self._shares: Iterator[tuple[int, float]] = iter(())
        self._passed = 0

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        rows = np.flatnonzero(stats.open)
        if canvas.step_in_block == 0:
            shares = self._pace.shares(len(rows))
            self._shares = enumerate(shares, self._passed)
            self._passed += len(shares)
        for step, share in self._shares:
            at = at_step(step)
            slots = stats.slots[rows] - canvas.first
            shown = [drawn.rng.accepts(share, at + int(slot), 0) for slot in slots]
            if any(shown):
                return commit(stats, drawn, rows[shown])
        return commit(stats, drawn, rows)


@dataclass(frozen=True, slots=True)
class DilatedPolicy(CommitRule):
    """Dilated unmasking (Luxembourg et al. 2025): in a window of w slots every (w / base)th slot,
    then every (w / base^2)th, and so on: about log w steps, whatever the predictions.
    """

    base: int = 2

    def __post_init__(self) -> None:
        if self.base < 2:
            raise ValueError(f"gaps cannot shrink by {self.base}")

    def rows(self, stats: Stats, _drawn: SampledTokens, canvas: Canvas) -> Bits:
        """The rows of the widest gap at which a slot is open."""
        place = stats.slots - canvas.window.start
        gap = len(canvas.window)
        chosen = np.zeros(len(place), dtype=np.bool_)
        while gap > 1 and not chosen.any():
            gap = max(1, gap // self.base)
            chosen = stats.open & (place % gap == 0)
        return chosen if chosen.any() else stats.open
