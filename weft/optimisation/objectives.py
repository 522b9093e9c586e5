"""Quality, latency and cost: figures, paired gains, dominance, the front and its hypervolume.

Points and gains are oriented: higher is better, whatever the objective.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Final, Literal, TypeAlias, TypeVar

from weft.core.errors import InputError
from weft.evaluation.statistics import (
    Interval,
    bootstrap_mean,
    bootstrap_quantile_difference,
    bootstrap_quantile_p,
    mcnemar_exact,
    quantile_of,
    sign_flip,
)
from weft.optimisation.candidates import CaseOutcome

Outcomes: TypeAlias = Sequence[CaseOutcome]
Point: TypeAlias = tuple[float, ...]
ExactPoint: TypeAlias = tuple[float | Fraction, ...]
"""A point, or one of exact shares: what dominates what is asked of both."""
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Objective:
    """One figure of a program: a mean over cases, or a quantile where `quantile` is given.

    `margin` is how much worse a candidate may be where another objective is improved: a difference
    of quality, a share of the baseline's latency or cost. `unit`: what a cost is counted in.
    """

    name: Literal["quality", "latency", "cost"]
    margin: float
    quantile: float | None = None
    unit: Literal["usd", "tokens"] = "usd"

    def __post_init__(self) -> None:
        if self.margin < 0 or not 0 < (0.5 if self.quantile is None else self.quantile) < 1:
            raise InputError(f"{self.name}: a margin is at least 0, a quantile between 0 and 1")

    def values(self, outcomes: Outcomes) -> list[float]:
        """The oriented value of each case: score, minus seconds, minus money or tokens."""
        if self.name == "quality":
            return [outcome.score for outcome in outcomes]
        if self.name == "latency":
            return [-outcome.seconds for outcome in outcomes]
        if self.unit == "tokens":
            return [-float(outcome.tokens) for outcome in outcomes]
        return [-outcome.cost for outcome in outcomes]

    def figure(self, outcomes: Outcomes) -> float:
        """The oriented figure over all cases."""
        values = self.values(outcomes)
        return fmean(values) if self.quantile is None else quantile_of(values, 1 - self.quantile)

    def allowed_loss(self, baseline: Outcomes) -> float:
        """The margin in units of the figure."""
        return self.margin * (1.0 if self.name == "quality" else abs(self.figure(baseline)))

    def gain(
        self,
        new: Outcomes,
        old: Outcomes,
        *,
        groups: Sequence[Hashable] | None = None,
        level: float = 0.95,
    ) -> Interval:
        """Interval of figure(new) - figure(old) on the same cases."""
        a, b = self.values(new), self.values(old)
        if self.quantile is not None:
            return bootstrap_quantile_difference(
                a, b, 1 - self.quantile, groups=groups, level=level
            )
        return bootstrap_mean(_differences(a, b), groups=groups, level=level)

    def p_value(
        self, new: Outcomes, old: Outcomes, *, groups: Sequence[Hashable] | None = None
    ) -> float:
        """Two-sided p of "no difference": exact McNemar where scores are right or wrong, else by
        permutation of signs (of groups' sums, where there are groups); quantiles by bootstrap.
        """
        a, b = self.values(new), self.values(old)
        if self.quantile is not None:
            return bootstrap_quantile_p(a, b, 1 - self.quantile, groups=groups)
        differences = _differences(a, b)
        if groups is None and self.name == "quality" and {*a, *b} <= {0.0, 1.0}:
            return mcnemar_exact(differences.count(1.0), differences.count(-1.0))
        if groups is not None:
            sums: dict[Hashable, float] = {}
            for group, each in zip(groups, differences, strict=True):
                sums[group] = sums.get(group, 0.0) + each
            differences = list(sums.values())
        return sign_flip(differences)


QUALITY: Final = Objective("quality", 0.02)
LATENCY: Final = Objective("latency", 0.1, quantile=0.95)
COST: Final = Objective("cost", 0.1)
TOKENS: Final = Objective("cost", 0.1, unit="tokens")
"""The cost where no model has a price: tokens of prompts and answers."""


def cost_of(baseline: Outcomes) -> Objective:
    """How a study counts cost: in money, or in tokens where the workflow costs no money."""
    return COST if not baseline or any(outcome.cost for outcome in baseline) else TOKENS


def point(outcomes: Outcomes, objectives: Sequence[Objective]) -> Point:
    """The oriented figures of a candidate."""
    return tuple(objective.figure(outcomes) for objective in objectives)


def dominates(one: ExactPoint, other: ExactPoint) -> bool:
    """Whether `one` is nowhere worse and somewhere better."""
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


def dominates_with_confidence(
    one: Outcomes, other: Outcomes, objectives: Sequence[Objective], *, level: float = 0.95
) -> bool:
    """Dominance that paired intervals show, at a joint level over the objectives (Bonferroni)."""
    each = 1 - (1 - level) / len(objectives)
    lows = [objective.gain(one, other, level=each).low for objective in objectives]
    return all(low >= 0 for low in lows) and any(low > 0 for low in lows)


def pareto_front(points: Mapping[T, ExactPoint]) -> list[T]:
    """The names of all points that no other one dominates, in their order."""
    return [
        name
        for name, own in points.items()
        if not any(dominates(other, own) for other in points.values())
    ]


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """The volume that points dominate above `reference`, in up to three dimensions or so.

    By slices along the last objective: exact, and exponential in the number of objectives.
    """
    better = [each for each in points if all(a > b for a, b in zip(each, reference, strict=True))]
    if not better:
        return 0.0
    if len(reference) == 1:
        return max(each[0] for each in better) - reference[0]
    volume, levels = 0.0, sorted({each[-1] for each in better}, reverse=True)
    for high, low in zip(levels, [*levels[1:], reference[-1]], strict=True):
        above = [each[:-1] for each in better if each[-1] >= high]
        volume += (high - low) * hypervolume(above, reference[:-1])
    return volume


def _differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    if len(a) != len(b):
        raise InputError(f"outcomes of {len(a)} and of {len(b)} cases cannot be paired")
    return [one - other for one, other in zip(a, b, strict=True)]
