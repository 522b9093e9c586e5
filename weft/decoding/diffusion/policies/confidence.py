"""Commit every slot whose confidence reaches a threshold. Blind to how many pass together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.action import Action, SlotTokens
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.canvas import Bits, Canvas
from weft.decoding.diffusion.policies.fixed_pace import CommitPace, EveryStep, PaceSession
from weft.decoding.diffusion.policies.ranking import commit, ranked, score_of, surest
from weft.decoding.diffusion.ports import Need
from weft.decoding.diffusion.stats import SampledTokens, Stats

By = Literal["confidence", "drawn"]
SLACK: Final = 1e-6
"""Probabilities from float32 logits differ by less where they are equal: one half may read
0.49999997 on one machine and 0.5 on the next."""


def reaches(values: NDArray[np.float64], threshold: float) -> Bits:
    """Where `values` are at least the threshold, within rounding."""
    reached: Bits = values >= threshold - SLACK
    return reached


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Fast-dLLM (Wu et al. 2025); with a pace, Dimple's confident decoding (Yu et al. 2025) and
    SDAR's dynamic one.

    Where no slot reaches the threshold, the surest are written: as many as the pace says. `filled`:
    also where some do, but fewer.

    by  `drawn`, as published: a slot that drew something unlikely waits, so that texts are valid
        more often and no fair sample; `confidence`: the likeliest token counts, whatever is drawn.
        Alike where tokens are taken greedily
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


class _ThresholdSession:
    def __init__(self, settings: ThresholdPolicy, canvas: Canvas) -> None:
        self._settings = settings
        self._pacing: PaceSession = settings.pace.begin(len(canvas.open))

    def propose(self, stats: Stats, drawn: SampledTokens, canvas: Canvas) -> Action:
        rules = self._settings
        left = int(stats.open.sum())
        if canvas.step_in_block == 0:
            self._pacing = rules.pace.begin(left)
        due = self._pacing.due(left)
        score = score_of(rules.by, stats, drawn)
        rows = ranked(score, stats.open)
        sure = int(reaches(score[rows], rules.threshold).sum())
        if not sure or (rules.filled and sure < due):
            sure = due
        return commit(stats, drawn, rows[:sure])


@dataclass(frozen=True, slots=True)
class FactorPolicy:
    """Fast-dLLM's factor rule (Wu et al. 2025): the n surest slots, for the largest n with
    (n + 1) (1 - confidence of the nth) < `factor`; at least one.

    If each of n slots has a token with probability above 1 - e, and (n + 1) e <= 1, these tokens
    are the likeliest together too: at most 1 never errs where tokens are taken greedily and
    predictions are true. Larger factors are guesses. `by`: see `Threshold`.
    """

    factor: float = 1.0
    by: By = "drawn"
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < np.inf:
            raise ValueError(f"a factor of {self.factor}")

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _FactorSession:
        return _FactorSession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _FactorSession:
    def __init__(self, settings: FactorPolicy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        rules = self._settings
        score = score_of(rules.by, stats, drawn)
        rows = ranked(score, stats.open)
        # with the slack, rounding does not let through what stands at the border
        doubt = (np.arange(len(rows)) + 2) * (1.0 - score[rows] + SLACK)
        certified = int((doubt < rules.factor).sum())
        return commit(stats, drawn, rows[: max(1, certified)])


@dataclass(frozen=True, slots=True)
class EntropyThresholdPolicy:
    """dParallel's rule (Chen et al. 2025): entropy at most `nats`, or the least of all."""

    nats: float = 0.5
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not self.nats >= 0.0:
            raise ValueError(f"an entropy of {self.nats} nats")

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _EntropyThresholdSession:
        return _EntropyThresholdSession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _EntropyThresholdSession:
    def __init__(self, settings: EntropyThresholdPolicy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        rows = ranked(-stats.entropy, stats.open)
        certain = int(reaches(-stats.entropy[rows], -self._settings.nats).sum())
        return commit(stats, drawn, rows[: max(1, certain)])


@dataclass(frozen=True, slots=True)
class EntropyBoundPolicy:
    """EB-Sampler (Ben-Hamu et al. 2025): of the slots by rising entropy, the longest beginning
    whose sum of entropies less the largest is at most `nats`; at least one.

    Their joint law has at least the entropy of each one: so the sum less the largest bounds the
    divergence of the product of predictions from it, if predictions are true.
    """

    nats: float = 0.1
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not self.nats >= 0.0:
            raise ValueError(f"an entropy of {self.nats} nats")

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _EntropyBoundSession:
        return _EntropyBoundSession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _EntropyBoundSession:
    def __init__(self, settings: EntropyBoundPolicy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        rows = ranked(-stats.entropy, stats.open)
        entropy = stats.entropy[rows]
        # ascending: the largest of a beginning is its last
        lost = np.cumsum(entropy) - entropy
        allowed = int(reaches(-lost, -self._settings.nats).sum())
        return commit(stats, drawn, rows[: max(1, allowed)])


@dataclass(frozen=True, slots=True)
class HierarchyPolicy:
    """dInfer's hierarchical decoder (Ma et al. 2025).

    Written are: all slots whose confidence reaches `high`; of each run of neighbouring open slots
    the surest, if it reaches `low`; and the surest of all.
    """

    high: float = 0.9
    low: float = 0.4
    needs: frozenset[Need] = frozenset()

    def begin(self, _canvas: Canvas, _traits: ModelTraits) -> _HierarchySession:
        return _HierarchySession(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _HierarchySession:
    def __init__(self, settings: HierarchyPolicy) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: SampledTokens, _canvas: Canvas) -> Action:
        rules = self._settings
        chosen = stats.open & reaches(stats.confidence, rules.high)
        fair = reaches(stats.confidence, rules.low)
        rows = np.flatnonzero(stats.open)
        # a new run begins where a slot does not follow the one before it
        for run in np.split(rows, np.flatnonzero(np.diff(stats.slots[rows]) > 1) + 1):
            if len(run):
                best = run[stats.confidence[run].argmax()]
                chosen[best] |= fair[best]
        chosen |= surest(stats, 1)
        return Action(commit=SlotTokens.of(stats.slots[chosen], drawn.ids[chosen]))
