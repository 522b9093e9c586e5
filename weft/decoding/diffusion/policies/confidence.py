"""Policies that write every slot whose confidence or entropy passes a threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.policies.fixed_pace import CommitPace, EveryStep, PacedSession
from weft.decoding.diffusion.policies.ranking import (
    CommitRule,
    Rows,
    commit,
    most_confident,
    rank_rows,
    score_of,
)
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SLACK, SampledTokens, Stats, reaches

By = Literal["confidence", "drawn"]


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Fast-dLLM (Wu et al. 2025); with a pace, Dimple's confident decoding (Yu et al. 2025) and
    SDAR's dynamic one. Ignores how many slots pass together.

    Where no slot reaches the threshold, the surest are written, as many as the pace says; with
    `filled`, also where fewer reach it.

    by  `drawn`, as published: a slot with an unlikely sample waits, so that texts are valid more
        often and no fair sample; `confidence`: the likeliest token counts. Equal for greedy
        sampling
    """

    threshold: float = 0.9
    by: By = "drawn"
    pace: CommitPace = field(default_factory=EveryStep)
    filled: bool = False
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"a threshold of {self.threshold}")

    def begin(self, canvas: Canvas, _traits: ModelTraits) -> _ThresholdSession:
        return _ThresholdSession(self, canvas)

    def most_forwards(self, slots: int) -> int:
        return slots


class _ThresholdSession(PacedSession):
    def __init__(self, settings: ThresholdPolicy, canvas: Canvas) -> None:
        super().__init__(settings.pace, canvas)
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        settings, due = self._settings, self.due(stats, canvas)
        score = score_of(settings.by, stats, drawn)
        rows = rank_rows(score, stats.open)
        sure = int(reaches(score[rows], settings.threshold).sum())
        if not sure or (settings.filled and sure < due):
            sure = due
        return commit(stats, drawn, rows[:sure])


@dataclass(frozen=True, slots=True)
class FactorPolicy(CommitRule):
    """Fast-dLLM's factor rule (Wu et al. 2025): the n surest slots, for the largest n with
    (n + 1) (1 - confidence of the nth) < `factor`; at least one.

    If each of n slots has a token with probability above 1 - e, and (n + 1) e <= 1, these tokens
    are also the likeliest jointly: a factor of at most 1 never errs for greedy sampling and exact
    predictions. Larger factors are heuristic. `by`: see `ThresholdPolicy`.
    """

    factor: float = 1.0
    by: By = "drawn"

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < np.inf:
            raise ValueError(f"a factor of {self.factor}")

    def rows(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Rows:
        score = score_of(self.by, stats, drawn)
        rows = rank_rows(score, stats.open)
        # the slack keeps rounding from passing slots at the threshold
        doubt = (np.arange(len(rows)) + 2) * (1.0 - score[rows] + SLACK)
        return rows[: max(1, int((doubt < self.factor).sum()))]


@dataclass(frozen=True, slots=True)
class EntropyThresholdPolicy(CommitRule):
    """dParallel's rule (Chen et al. 2025), for models trained to be certain: all slots with an
    entropy of at most `nats`, at least the one with the lowest.
    """

    nats: float = 0.5

    def __post_init__(self) -> None:
        _check_nats(self.nats)

    def rows(self, stats: Stats, _drawn: SampledTokens, _canvas: Canvas) -> Rows:
        rows = rank_rows(-stats.entropy, stats.open)
        return rows[: max(1, int(reaches(-stats.entropy[rows], -self.nats).sum()))]


@dataclass(frozen=True, slots=True)
class EntropyBoundPolicy(CommitRule):
    """EB-Sampler (Ben-Hamu et al. 2025): of the slots by rising entropy, the longest prefix whose
    sum of entropies without the largest is at most `nats`; at least one.

    The entropy of their joint distribution is at least the largest one. So the sum without it
    bounds its divergence from the product of predictions, if these are exact.
    """

    nats: float = 0.1

    def __post_init__(self) -> None:
        _check_nats(self.nats)

    def rows(self, stats: Stats, _drawn: SampledTokens, _canvas: Canvas) -> Rows:
        rows = rank_rows(-stats.entropy, stats.open)
        entropy = stats.entropy[rows]
        # ascending: the largest of a prefix is its last
        lost = np.cumsum(entropy) - entropy
        return rows[: max(1, int(reaches(-lost, -self.nats).sum()))]


@dataclass(frozen=True, slots=True)
class HierarchyPolicy(CommitRule):
    """dInfer's hierarchical decoder (Ma et al. 2025): slots far apart, the best of each gap.

    Written are: all slots whose confidence reaches `high`; of each run of neighbouring open slots
    the surest, if it reaches `low`; and the surest of all. It assumes that slots far apart depend
    less on each other.
    """

    high: float = 0.9
    low: float = 0.4

    def rows(self, stats: Stats, _drawn: SampledTokens, _canvas: Canvas) -> Bits:
        chosen = stats.open & reaches(stats.confidence, self.high)
        fair = reaches(stats.confidence, self.low)
        rows = np.flatnonzero(stats.open)
        # a new run begins where a slot does not follow the one before it
        for run in np.split(rows, np.flatnonzero(np.diff(stats.slots[rows]) > 1) + 1):
            if len(run):
                best = run[stats.confidence[run].argmax()]
                chosen[best] |= fair[best]
        return chosen | most_confident(stats, 1)


def _check_nats(nats: float) -> None:
    if not nats >= 0.0:
        raise ValueError(f"an entropy of {nats} nats")
