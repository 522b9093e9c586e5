"""Two evaluations compared case by case: paired tests, intervals, and what got worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from weft.core.errors import InputError
from weft.evaluation.result import EvaluationResult
from weft.evaluation.statistics import (
    UNKNOWN,
    Interval,
    bootstrap_mean,
    bootstrap_quantile_difference,
    mcnemar_exact,
    sign_flip,
)

ALPHA = 0.05
"""The level of the paired tests."""
FEW_GROUPS = 10
"""With fewer groups their test says so."""


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """A metric of the candidate `b` against the baseline `a`, on the cases that both have scored.

    `difference`: b - a, with its 95 % interval. `p`: two-sided, of the test that `test` names.
    `lost` and `won`: the cases whose score fell or rose, by how much, the largest change first.
    """

    metric: str
    cases: int
    a: float
    b: float
    difference: Interval
    p: float
    test: str
    lost: Mapping[str, float]
    won: Mapping[str, float]

    @property
    def verdict(self) -> str:
        """better, worse, or not shown: at a level of 5 %."""
        if not self.p < ALPHA:
            return "not shown"
        return "better" if self.difference.mean > 0 else "worse"


@dataclass(frozen=True, slots=True)
class EvaluationComparison:
    """The candidate `b` against the baseline `a`.

    `metrics`: those of both; the main one of `b` first. `p50_s`, `p95_s`: differences of the wall
    time of cases that succeeded in both, None without any. `tokens` and `cost_usd`: of a case, the
    mean difference. `notes`: what limits the comparison.
    """

    a: str
    b: str
    metrics: tuple[MetricComparison, ...]
    p50_s: Interval | None
    p95_s: Interval | None
    tokens: Interval
    cost_usd: Interval
    notes: tuple[str, ...] = ()

    @property
    def main(self) -> MetricComparison:
        """The comparison of the main metric."""
        return self.metrics[0]


def compare_evaluations(a: EvaluationResult, b: EvaluationResult) -> EvaluationComparison:
    """Compare the candidate `b` with the baseline `a`, on the cases that both have.

    Raises: `InputError` where `a` has not the main metric of `b`, or no case is scored in both.
    """
    if b.main not in a.metrics:
        hint = f"{a.run} has {', '.join(a.metrics)}; {b.run} has {', '.join(b.metrics)}"
        raise InputError(f"{a.run} has no metric `{b.main}`, the main one of {b.run}", hint=hint)
    names = [name for name in (b.main, *b.metrics) if name in a.metrics]
    made = tuple(_metric(a, b, name) for name in dict.fromkeys(names))
    notes = []
    if a.data.get("digest") != b.data.get("digest"):
        notes.append(f"their data differ: compared on {made[0].cases:,} common cases")
    if a.replicates != b.replicates:
        notes.append(f"{a.replicates} replicates against {b.replicates}: other random numbers")
    means, other = b.means(), a.means()
    together = [b.groups[case] or case for case in means if case in other]
    count = len(set(together))
    if count < min(FEW_GROUPS, len(together)):
        notes.append(f"{count} groups of cases: too few groups to show anything")
    walls = [case for case in a.walls if case in b.walls]
    pair = [b.walls[case] for case in walls], [a.walls[case] for case in walls]
    groups = [b.groups[case] or case for case in walls]

    def moved(share: float) -> Interval | None:
        return bootstrap_quantile_difference(*pair, share, groups=groups) if walls else None

    before, after = _spent(a), _spent(b)
    spent = [case for case in before if case in after]
    tokens, money = (
        bootstrap_mean(
            [after[case][place] - before[case][place] for case in spent],
            groups=[b.groups[case] or case for case in spent],
        )
        if spent
        else UNKNOWN
        for place in (0, 1)
    )
    return EvaluationComparison(
        a.run, b.run, made, moved(0.5), moved(0.95), tokens, money, tuple(notes)
    )


def _metric(a: EvaluationResult, b: EvaluationResult, name: str) -> MetricComparison:
    before, after = a.means(name), b.means(name)
    common = [case for case in before if case in after]
    if not common:
        hint = "compare evaluations on the same data"
        raise InputError(f"no case has a score of `{name}` in both {a.run} and {b.run}", hint=hint)
    moved = {case: after[case] - before[case] for case in common}
    values = list(moved.values())
    groups = [b.groups[case] or case for case in common]
    p, test = _test(values, groups, binary={*before.values(), *after.values()} <= {0.0, 1.0})
    changed = sorted((case for case in common if moved[case]), key=lambda case: -abs(moved[case]))
    return MetricComparison(
        name,
        len(common),
        math.fsum(before[case] for case in common) / len(common),
        math.fsum(after[case] for case in common) / len(common),
        bootstrap_mean(values, groups=groups),
        p,
        test,
        {case: moved[case] for case in changed if moved[case] < 0},
        {case: moved[case] for case in changed if moved[case] > 0},
    )


def _test(values: list[float], groups: list[str], *, binary: bool) -> tuple[float, str]:
    """p and the name of the test; a group of cases is one observation: its cases go together."""
    of_groups: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        of_groups.setdefault(group, []).append(value)
    if len(of_groups) < len(values):
        sums = [math.fsum(each) for each in of_groups.values()]
        return sign_flip(sums), f"sign flips of {len(sums):,} groups"
    if binary:
        lost, won = sum(each < 0 for each in values), sum(each > 0 for each in values)
        return mcnemar_exact(lost, won), "exact McNemar"
    return sign_flip(values), "sign flips"


def _spent(result: EvaluationResult) -> dict[str, tuple[float, float]]:
    """Tokens and money of each case that has ended, mean of its replicates."""
    found: dict[str, list[tuple[float, float]]] = {}
    for case in result.cases:
        if case.status != "unfinished":
            found.setdefault(case.case, []).append((case.usage.tokens, case.usage.money))
    return {
        case: (
            math.fsum(each[0] for each in spent) / len(spent),
            math.fsum(each[1] for each in spent) / len(spent),
        )
        for case, spent in found.items()
    }
