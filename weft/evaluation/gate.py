"""Whether an evaluation passes: a least score, and "no worse than the baseline"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.core.errors import InputError, UnknownReference
from weft.core.ports.journal import Journal
from weft.evaluation.compare import EvaluationComparison, compare_evaluations
from weft.evaluation.record import is_evaluation, read_evaluation
from weft.evaluation.result import EvaluationResult
from weft.workflow.history.run_history import LAST, find_run, read_history

_MOST_RUNS: Final = 500


@dataclass(frozen=True, slots=True)
class EvaluationGate:
    """`fail_below`: the least score of the main metric. `fail_if_worse`: than the baseline, by the
    paired test at 5 %. `margin`: a fall of up to so much is allowed.
    """

    fail_below: float | None = None
    fail_if_worse: bool = False
    margin: float = 0.0

    def failures(
        self, result: EvaluationResult, comparison: EvaluationComparison | None
    ) -> tuple[str, ...]:
        """Why the evaluation does not pass, in sentences; empty: it passes.

        Raises: `InputError` without a baseline to be no worse than.
        """
        found = []
        if not result.finished:
            found.append(f"{result.counts()['unfinished']:,} results are missing")
        if self.fail_below is not None and not result.score >= self.fail_below:
            found.append(f"{result.main} is {result.score:.4g}, below {self.fail_below:g}")
        if self.fail_if_worse:
            if comparison is None:
                hint = "name one: --baseline RUN, or --baseline last"
                raise InputError("there is no baseline to be no worse than", hint=hint)
            main = comparison.main
            if main.verdict == "worse" and main.difference.mean < -self.margin:
                found.append(
                    f"{main.metric} is worse than in {comparison.a}: {main.a:.4g} -> {main.b:.4g}, "
                    f"p = {main.p:.2g} on {main.cases:,} cases"
                )
        return tuple(found)


def find_baseline(journal: Journal, text: str, result: EvaluationResult) -> EvaluationResult:
    """The evaluation that `text` names; `last`: the last finished one of the same flow before it.

    Raises: `UnknownReference` where there is none, `InputError` where the run is no evaluation.
    """
    if text != LAST:
        return read_evaluation(read_history(journal, find_run(journal, text)))
    for summary in journal.runs(limit=_MOST_RUNS):
        if summary.run == result.run or summary.flow != f"{result.flow}-evaluation":
            continue
        history = read_history(journal, summary.run)
        if is_evaluation(history.header.settings):
            found = read_evaluation(history)
            if found.finished:
                return found
    hint = "the first evaluation has nothing to be compared with"
    raise UnknownReference(f"there is no earlier evaluation of {result.flow}", hint=hint)


def compared(
    journal: Journal, baseline: str | None, result: EvaluationResult
) -> EvaluationComparison | None:
    """`result` against its baseline; None without one. Raises: as `find_baseline`."""
    if baseline is None:
        return None
    return compare_evaluations(find_baseline(journal, baseline, result), result)
