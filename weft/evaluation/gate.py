"""Whether an evaluation passes: a least score, nothing unscored, "no worse than the baseline"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from weft.evaluation.compare import EvaluationComparison
from weft.evaluation.result import EvaluationResult


@dataclass(frozen=True, slots=True)
class EvaluationGate:
    """`fail_below`: the least score of the main metric. `fail_if_worse`: than the baseline, by the
    paired test at 5 %. `margin`: a fall of up to so much is allowed. `max_unscored`: so many
    results may be without a score; none where another gate is given.
    """

    fail_below: float | None = None
    fail_if_worse: bool = False
    margin: float = 0.0
    max_unscored: int | None = None

    @property
    def is_given(self) -> bool:
        """Whether there is anything to reach."""
        return self.fail_below is not None or self.fail_if_worse or self.max_unscored is not None

    @property
    def recorded(self) -> dict[str, Any]:
        """The gate as plain data of a record; empty where nothing is to be reached."""
        return asdict(self) if self.is_given else {}

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> EvaluationGate:
        """The gate in a record."""
        return (
            cls(**{each.name: recorded[each.name] for each in fields(cls)}) if recorded else cls()
        )

    def failures(
        self, result: EvaluationResult, comparison: EvaluationComparison | None
    ) -> tuple[str, ...]:
        """Why the evaluation does not pass, in sentences; empty: it passes.

        Without a comparison nothing is worse.
        """
        found = []
        if not result.finished:
            found.append(f"{result.counts()['unfinished']:,} results are missing")
        unscored = result.summary().unscored if self.is_given else 0
        if unscored > (self.max_unscored or 0):
            why = f"{unscored:,} results have no score of {result.main}"
            found.append(f"{why}, the first: {result.first_unscored()}")
        if self.fail_below is not None and not result.score >= self.fail_below:
            found.append(f"{result.main} is {result.score:.4g}, below {self.fail_below:g}")
        if self.fail_if_worse and comparison is not None:
            main = comparison.main
            if main.verdict == "worse" and main.difference.mean < -self.margin:
                found.append(
                    f"{main.metric} is worse than in {comparison.a}: {main.a:.4g} -> {main.b:.4g}, "
                    f"p = {main.p:.2g} on {main.cases:,} cases"
                )
        return tuple(found)
