"""Finds the evaluation that another is compared with, and applies the gates of a recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weft.core.errors import InputError, WeftError
from weft.core.ports.journal import Journal
from weft.evaluation.compare import compare_evaluations
from weft.evaluation.export import read_evaluation_file
from weft.evaluation.gate import EvaluationGate
from weft.evaluation.notes import NOTES, SUFFIX, is_evaluation
from weft.evaluation.record import read_evaluation
from weft.evaluation.result import EvaluationResult
from weft.workflow.history.run_history import LAST, find_run, read_history

_MOST_RUNS: Final = 500
_ALIKE: Final = ("name", "split", "limit", "filter")
"""What two evaluations of the same part of one data set have alike."""


def find_baseline(
    journal: Journal, text: str, flow: str, main: str, data: Mapping[str, Any], besides: str = ""
) -> EvaluationResult | None:
    """The evaluation that `text` names: a run, or a JSON file that `weft eval` printed.

    `last`: the last finished one of `flow` on the same part of the same `data` with the metric
    `main` that did not fail its own gates, if there is one; `besides` is a run that it is not.

    Raises: `UnknownReference` for an unknown run, `InputError` for what is no evaluation, or has
    not the metric.
    """
    if text == LAST:
        return _last(journal, flow, main, data, besides)
    found = _named(journal, text)
    if main not in found.metrics:
        hint = f"it has {', '.join(found.metrics)}: name another one, or make one of these the main"
        raise InputError(f"the baseline {text} has no metric `{main}`", hint=hint)
    return found


def _named(journal: Journal, text: str) -> EvaluationResult:
    if text.endswith(".json"):
        return read_evaluation_file(Path(text))
    return read_evaluation(read_history(journal, find_run(journal, text)))


def _last(
    journal: Journal, flow: str, main: str, data: Mapping[str, Any], besides: str
) -> EvaluationResult | None:
    for summary in journal.runs(limit=_MOST_RUNS):
        if summary.run == besides or summary.flow != f"{flow}{SUFFIX}":
            continue
        settings = journal.header(summary.run).settings
        if not is_evaluation(settings):
            continue
        about = settings[NOTES].get("data", {})
        if any(about.get(key) != data.get(key) for key in _ALIKE):
            continue
        found = read_evaluation(read_history(journal, summary.run))
        alike = found.finished and found.main == main
        if alike and not recorded_failures(journal, settings, found):
            return found
    return None


def recorded_failures(
    journal: Journal, settings: Mapping[str, Any], result: EvaluationResult
) -> tuple[str, ...]:
    """Why `result` does not pass the gates that its run was started with (see `EvaluationGate`).

    A baseline that can no longer be read is a failure too: nobody knows whether it passes.
    """
    gates = settings[NOTES].get("gates", {})
    gate, baseline = EvaluationGate.read(gates.get("gate", {})), gates.get("baseline")
    if not gate.is_given:
        return ()
    try:
        before = _named(journal, baseline) if gate.fail_if_worse and baseline else None
        compared = None if before is None else compare_evaluations(before, result)
    except WeftError as error:
        return (f"there is no comparison with {baseline}: {error.message}",)
    return gate.failures(result, compared)
