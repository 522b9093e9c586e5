"""Whether an evaluation passes: a least score, and "no worse than the baseline"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.core.errors import InputError
from weft.core.ports.journal import Journal
from weft.evaluation.compare import EvaluationComparison
from weft.evaluation.export import read_evaluation_file
from weft.evaluation.notes import SUFFIX, is_evaluation
from weft.evaluation.record import read_evaluation
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

        Without a comparison nothing is worse.
        """
        found = []
        if not result.finished:
            found.append(f"{result.counts()['unfinished']:,} results are missing")
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


def find_baseline(
    journal: Journal, text: str, flow: str, metrics: Iterable[str], besides: str = ""
) -> EvaluationResult | None:
    """The evaluation that `text` names: a run, or a JSON file that `weft eval` printed.

    `last`: the last finished one of `flow` with one of the `metrics`, if there is one; `besides` is
    a run that it is not.

    Raises: `UnknownReference` for an unknown run, `InputError` for what is no evaluation, or has
    none of the metrics.
    """
    wanted = set(metrics)
    if text != LAST:
        if text.endswith(".json"):
            found = read_evaluation_file(Path(text))
        else:
            found = read_evaluation(read_history(journal, find_run(journal, text)))
        if not wanted & set(found.metrics):
            hint = f"it has {', '.join(found.metrics)}; this one {', '.join(sorted(wanted))}"
            raise InputError(f"{text} has no metric to be compared by", hint=hint)
        return found
    for summary in journal.runs(limit=_MOST_RUNS):
        if summary.run == besides or summary.flow != f"{flow}{SUFFIX}":
            continue
        history = read_history(journal, summary.run)
        if is_evaluation(history.header.settings):
            found = read_evaluation(history)
            if found.finished and wanted & set(found.metrics):
                return found
    return None
