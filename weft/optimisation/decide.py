"""Is it better? Headroom, the sealed held-out cases, and the verdict.

A winner's score on development cases is never reported: the held-out cases say what it is worth, in
one look that is counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final, Literal

from weft.core.errors import InputError
from weft.evaluation.statistics import Interval, holm
from weft.optimisation.candidates import Candidate, CaseId
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import Objective, Outcomes

LEAST_CASES: Final = 30
"""With fewer held-out cases nothing is ever called improved."""
DISCORDANCE: Final = 0.3
"""Share of cases on which two candidates differ, where nothing was measured."""
_POWER: Final = 0.8


@dataclass(slots=True)
class HeldOut:
    """Held-out cases behind a seal: `open` is the only way to them, and is counted.

    `groups` names each case's group, where cases are not independent. `looks` starts with those of
    earlier studies on the same cases.
    """

    cases: Sequence[CaseId]
    groups: Sequence[Hashable] | None = None
    looks: int = 0

    def __post_init__(self) -> None:
        if self.groups is not None and len(self.groups) != len(self.cases):
            raise InputError("each held-out case has one group")

    def open(self, most: int | None = None) -> tuple[Sequence[CaseId], Sequence[Hashable] | None]:
        """The first `most` cases (default: all) and their groups. Counts a look."""
        self.looks += 1
        cases = self.cases[:most]
        return cases, None if self.groups is None else self.groups[: len(cases)]


@dataclass(frozen=True, slots=True)
class FinalistComparison:
    """A finalist beside the baseline on the held-out cases.

    `gains` are oriented (positive is better), by objective; `p` is that of the improved objective,
    adjusted over the finalists by Holm; `kept` names what did not stay within its margin.
    """

    candidate: Candidate
    gains: Mapping[str, Interval]
    p: float
    p_adjusted: float
    broken: tuple[str, ...]

    def accepted(self, goal: StudyGoal, level: float) -> bool:
        """Whether the objective improves and everything else is kept."""
        better = self.gains[goal.improve.name].mean > 0 and self.p_adjusted < level
        return better and not self.broken


@dataclass(frozen=True, slots=True)
class StudyVerdict:
    """The end of a study. `candidate` is the baseline unless `kind` is "improved".

    `detectable` is the smallest difference that the held-out cases show with a power of 80 %.
    """

    kind: Literal["improved", "not_shown", "no_headroom"]
    candidate: Candidate
    reason: str
    detectable: float
    looks: int
    cases: int
    comparisons: tuple[FinalistComparison, ...] = ()


def compare_finalists(
    goal: StudyGoal,
    baseline: Outcomes,
    finalists: Mapping[Candidate, Outcomes],
    *,
    planned: int,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.05,
) -> tuple[FinalistComparison, ...]:
    """Compare those finalists that were looked at; `planned` were to be, and are adjusted for."""
    found = []
    p_values = [goal.improve.p_value(new, baseline, groups=groups) for new in finalists.values()]
    missing = [1.0] * (planned - len(p_values))
    adjusted = holm(p_values + missing)
    confidence = 1 - level
    for at, (candidate, outcomes) in enumerate(finalists.items()):
        gains: dict[str, Interval] = {
            objective.name: objective.gain(outcomes, baseline, groups=groups, level=confidence)
            for objective in goal.objectives
        }
        broken = tuple(
            objective.name
            for objective in goal.keep
            if gains[objective.name].low <= -objective.allowed_loss(baseline) - 1e-12
        )
        found.append(FinalistComparison(candidate, gains, p_values[at], adjusted[at], broken))
    return tuple(found)


def detectable_from(interval: Interval, cases: int, held_out: int, *, level: float = 0.05) -> float:
    """The difference that `held_out` cases would show, from an interval over `cases` cases."""
    if not cases or not held_out:
        return float("inf")
    normal = NormalDist()
    outer = normal.inv_cdf(1 - level / 2)
    half = (interval.high - interval.low) / 2 * sqrt(cases / held_out)
    return half * (outer + normal.inv_cdf(_POWER)) / outer


def ceiling(improve: Objective, baseline: Outcomes, worthwhile: float) -> str | None:
    """Why nothing is to be gained, where the baseline is right on nearly all cases."""
    if improve.name != "quality" or len(baseline) < LEAST_CASES:
        return None
    score = improve.figure(baseline)
    if score < 1 - worthwhile:
        return None
    return f"the baseline scores {score:.3f} on {len(baseline)} cases"


def no_headroom(upper: float, detectable: float) -> str | None:
    """Why a held-out look is not worth its calls: the best candidate's upper bound is too low."""
    if upper >= detectable:
        return None
    return f"the best candidate gains at most {upper:.3f}; {detectable:.3f} could be shown"


def describe(comparison: FinalistComparison) -> str:
    """One line for a report."""
    told = [f"{name} {_change(name, gain)}" for name, gain in comparison.gains.items()]
    told.append(f"p {comparison.p_adjusted:.3g}")
    told += [f"{name} is not within its margin" for name in comparison.broken]
    return ", ".join(told)


def _change(name: str, gain: Interval) -> str:
    """How the figure itself changes: less latency or cost is a gain."""
    if name == "quality":
        return f"{gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
    return f"{-gain.mean:+.3f} ({-gain.high:+.3f} to {-gain.low:+.3f})"
