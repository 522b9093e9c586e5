"""The result of an evaluation: scores, times, tokens and cost of every case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from weft.core.errors import UnknownReference
from weft.core.values import Usage
from weft.evaluation.metric import Score
from weft.evaluation.statistics import UNKNOWN, Interval, bootstrap_mean

CaseStatus = Literal["scored", "failed", "unscored", "unfinished"]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One replicate of a case.

    status    scored; failed: the workflow failed, which scores 0; unscored: its environment broke,
              or a metric failed, which says nothing of the workflow; unfinished: it has not ended
    scores    by metric, as far as there are any; `unscored` says why others are missing
    reason    why it failed or is unscored
    wall_s    from its start to its end, waiting for slots included
    usage     tokens and money of the workflow, without those of metrics
    """

    case: str
    replicate: int
    status: CaseStatus
    group: str = ""
    scores: Mapping[str, Score] = field(default_factory=dict)
    unscored: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    outputs: Any = None
    wall_s: float = 0.0
    usage: Usage = field(default_factory=Usage)


class MetricSummary(NamedTuple):
    """A metric over all cases: the mean of the cases' means, with a 95 % interval.

    `cases`: how many are scored; `unscored`: results without a score.
    """

    interval: Interval
    cases: int
    unscored: int


@dataclass(frozen=True)
class EvaluationResult:
    """An evaluation as it is recorded; `cases` has every replicate, in the order of the data.

    `run`: its id, empty where it is not recorded. `main`: the metric that gates and comparisons
    look at first. `data`: name, digest and size of the data set. `usage`: of everything, judges
    included. `wall_s`: of the whole run.
    """

    run: str
    flow: str
    data: Mapping[str, Any]
    metrics: tuple[str, ...]
    main: str
    replicates: int
    cases: tuple[CaseResult, ...]
    usage: Usage = field(default_factory=Usage)
    wall_s: float = 0.0
    finished: bool = True

    def counts(self) -> dict[CaseStatus, int]:
        """How many replicates have each status."""
        found: dict[CaseStatus, int] = {
            "scored": 0,
            "failed": 0,
            "unscored": 0,
            "unfinished": 0,
        }
        for case in self.cases:
            found[case.status] += 1
        return found

    @cached_property
    def _means(self) -> Mapping[str, Mapping[str, float]]:
        found: dict[str, dict[str, list[float]]] = {name: {} for name in self.metrics}
        for case in self.cases:
            for name, score in case.scores.items():
                found[name].setdefault(case.case, []).append(score.value)
        return {
            name: {case: math.fsum(values) / len(values) for case, values in of.items()}
            for name, of in found.items()
        }

    def means(self, metric: str | None = None) -> Mapping[str, float]:
        """The score of each scored case by its id: the mean of its replicates.

        Raises: `UnknownReference` for a metric that was not measured.
        """
        name = self.main if metric is None else metric
        if name not in self._means:
            hint = f"there are {', '.join(self.metrics)}"
            raise UnknownReference(f"there is no metric `{name}`", hint=hint)
        return self._means[name]

    @cached_property
    def _summaries(self) -> dict[str, MetricSummary]:
        """Those computed so far: they take a while."""
        return {}

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """The group of each case by its id."""
        return {case.case: case.group for case in self.cases}

    def summary(self, metric: str | None = None) -> MetricSummary:
        """The mean of a metric with its interval. Raises: `UnknownReference`."""
        means = self.means(metric)
        name = self.main if metric is None else metric
        if name not in self._summaries:
            groups = [self.groups[case] or case for case in means]
            interval = UNKNOWN
            if means:
                interval = bootstrap_mean(list(means.values()), groups=groups)
            ended = sum(case.status != "unfinished" for case in self.cases)
            scored = sum(name in case.scores for case in self.cases)
            self._summaries[name] = MetricSummary(interval, len(means), ended - scored)
        return self._summaries[name]

    def first_unscored(self, metric: str | None = None) -> str:
        """Why the first ended result without a score has none; empty where all are scored."""
        name = self.main if metric is None else metric
        for case in self.cases:
            if case.status != "unfinished" and name not in case.scores:
                return case.unscored.get(name) or case.reason or "nothing scored it"
        return ""

    @property
    def score(self) -> float:
        """The mean of the main metric; not a number where nothing is scored."""
        means = self.means()
        return math.fsum(means.values()) / len(means) if means else math.nan

    @cached_property
    def walls(self) -> Mapping[str, float]:
        """Seconds of each case by its id, mean of its replicates; of cases whose run succeeded."""
        found: dict[str, list[float]] = {}
        for case in self.cases:
            if case.status in ("scored", "unscored") and case.wall_s > 0:
                found.setdefault(case.case, []).append(case.wall_s)
        return {case: math.fsum(walls) / len(walls) for case, walls in found.items()}

    def wall(self, share: float) -> float:
        """A quantile of the cases' seconds, such as 0.95; not a number without any."""
        return quantile(list(self.walls.values()), share)

    @cached_property
    def case_usage(self) -> Usage:
        """The usage of all cases together, without metrics."""
        return sum((case.usage for case in self.cases), start=Usage())


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed; NaN without any."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered), max(1, math.ceil(share * len(ordered)))) - 1]
