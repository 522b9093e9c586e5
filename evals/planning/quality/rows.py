"""What plans scored as rows of one shape. Asks no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from evals.engine.rows import Row
from evals.planning.quality.benchmarks import Scores


@dataclass(frozen=True, slots=True)
class Graded:
    """One question: the scores, what is wrong with the text or with the plan, tokens written."""

    scores: Scores
    invalid: str
    wrong: str
    completion_tokens: int


def grade_rows(benchmark: str, system: str, graded: Sequence[Graded], seconds: float) -> list[Row]:
    """Mean scores, the share of invalid plans, and each class of error with its count."""
    metrics = dict.fromkeys(name for one in graded for name in one.scores)
    rows = []
    for metric in metrics:
        values = [value for one in graded if (value := one.scores.get(metric)) is not None]
        rows.append(Row(benchmark, system, metric, fmean(values) if values else None, "share"))
    invalid = Counter(one.invalid for one in graded if one.invalid)
    wrong = Counter(one.wrong for one in graded if one.wrong)
    share = invalid.total() / len(graded)
    tokens = fmean(one.completion_tokens for one in graded)
    rows += [
        Row(benchmark, system, "invalid_plans", share, "share"),
        Row(benchmark, system, "completion_tokens", tokens, "tokens a plan"),
        Row(benchmark, system, "items", len(graded), "items"),
        Row(benchmark, system, "seconds", seconds, "s for all"),
    ]
    rows += [
        Row(benchmark, system, f"invalid: {name}", count, "plans")
        for name, count in invalid.most_common()
    ]
    rows += [
        Row(benchmark, system, f"wrong: {name}", count, "plans")
        for name, count in wrong.most_common()
    ]
    return rows
