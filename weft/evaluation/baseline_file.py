"""An evaluation beside a baseline in a file: for tests that demand "no worse than before"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft.core.errors import InputError
from weft.evaluation.compare import compare_evaluations
from weft.evaluation.evaluate import evaluate_sync
from weft.evaluation.export import evaluation_data, read_evaluation_file
from weft.evaluation.gate import EvaluationGate
from weft.evaluation.result import EvaluationResult
from weft.workflow.flow.flow import AnyFlow


def evaluate_against(
    baseline: Path,
    flow: AnyFlow,
    data: Any,
    metric: Any,
    *,
    fail_below: float | None = None,
    margin: float = 0.0,
    max_unscored: int = 0,
    record: str = "none",
    **options: Any,
) -> tuple[EvaluationResult, tuple[str, ...]]:
    """The evaluation, and why it does not pass; it becomes the baseline where `record` says so.

    `record`: none; once: a missing baseline is written; all: a new one is. Raises: as `evaluate`;
    `InputError` without a baseline, before anything runs.
    """
    writes = record == "all" or (record == "once" and not baseline.is_file())
    if not writes and not baseline.is_file():
        hint = "`pytest --weft-record=once` writes it"
        raise InputError(f"there is no baseline {baseline}", hint=hint)
    before = None if writes else read_evaluation_file(baseline)
    found = evaluate_sync(flow, data, metric, **options)
    compared = None if before is None else compare_evaluations(before, found)
    gate = EvaluationGate(fail_below, fail_if_worse=True, margin=margin, max_unscored=max_unscored)
    failures = gate.failures(found, compared)
    if writes and found.finished:
        baseline.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(evaluation_data(found, outputs=False), indent=1, ensure_ascii=False)
        baseline.write_text(text + "\n", encoding="utf-8")
    return found, failures
