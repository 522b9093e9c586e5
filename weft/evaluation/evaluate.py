"""`evaluate`: a workflow over a data set, as one recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from weft.core.errors import BuildError, InputError
from weft.core.events import Event, NodeFinished, Subscription
from weft.core.keywords import check_keywords
from weft.engine.analysis.trace import Trace
from weft.evaluation.case import SHARES
from weft.evaluation.dataset import DataLike, Dataset, cases
from weft.evaluation.garbage import rare_collections
from weft.evaluation.metrics import MetricsLike, from_here, metrics_of
from weft.evaluation.notes import NOTES, is_evaluation
from weft.evaluation.program import (
    ITEMS,
    RUN,
    WIDTH,
    EvaluationProgram,
    environment_of,
    item_of,
    main_metric,
)
from weft.evaluation.record import check_offline, evaluation_of, read_evaluation
from weft.evaluation.result import EvaluationResult
from weft.workflow.document.spec.evaluation import DataSpec, EvaluationSpec
from weft.workflow.document.unit import Unit
from weft.workflow.flow.flow import AnyFlow
from weft.workflow.flow.run_arguments import SETTINGS
from weft.workflow.history.resume import claim_run, resume_run
from weft.workflow.history.run_history import find_run, read_history
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.journals import JournalPlace, journal_or_own, open_journal
from weft.workflow.runtime.options import FlowSettings, RunSettings
from weft.workflow.runtime.run import FlowRun


async def evaluate(
    flow: AnyFlow,
    data: DataLike | None = None,
    metric: MetricsLike | None = None,
    *,
    replicates: int | None = None,
    split: str | None = None,
    limit: int | None = None,
    filter: str | None = None,  # noqa: A002 - as on the command line
    shares: Sequence[int] = SHARES,
    slots: int = WIDTH,
    max_errors: int | None = None,
    prepare: str | None = None,
    check: str | None = None,
    tear_down: str | None = None,
    resume: str | None = None,
    **settings: Unpack[FlowSettings],
) -> EvaluationResult:
    """Run `flow` on every case of `data`, and score its outputs.

        result = await weft.evaluate(flow, "cases.jsonl", "exact", replicates=3)
        result.score, result.summary().interval, result.wall(0.95), result.cases[0].scores

    It is one recorded run: `weft resume` goes on with it where the flow and the metrics are in
    files, else `resume`. What is not given is taken from `evaluation` of the workflow.

    Args:
        data: a file, a function or a `weft.Dataset`: see `weft.cases`
        metric: exact, numeric:TOLERANCE, f1, schema, code, judge:MODEL, `./metrics.py:name`, a
            function `(case, outputs)` or `(case, outputs, trace)`; or several by name, the main one
            first. A function returns a bool, a number or a `weft.Score`
        replicates: how often each case runs; with the same random numbers in every evaluation
        split: only the cases of train, dev or held_out; `shares` are their parts
        limit: only so many cases, the first ones
        filter: only rows for which a template is true, `{{ case.topic == 'tea' }}`
        slots: at most so many cases at once
        max_errors: the run ends when more cases than that have failed
        prepare: the node of the flow that sets up a case's environment: where it fails, the case is
            unscored. Likewise `tear_down`. The value of the node `check` is the metric `check`
        resume: the run of an evaluation to go on with, with its `slots`; finished cases do not run
            again
        settings: of the run, as `flow.run` takes them

    Raises: `BuildError`, `InputError`, `StoreError`. A case that fails does not raise.
    """
    check_keywords("weft.evaluate", settings, SETTINGS)
    program = program_of(
        flow.unit,
        data,
        metric,
        replicates=replicates,
        split=split,
        limit=limit,
        filter=filter,
        shares=shares,
        slots=slots,
        max_errors=max_errors,
        environment={"prepare": prepare, "check": check, "tear_down": tear_down},
    )
    run = EvaluationRun(program)
    given: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    with rare_collections():
        await run.start(given, resume).wait()
        return run.result()


def evaluate_sync(*given: Any, **named: Any) -> EvaluationResult:
    """`evaluate` for scripts and notebooks; the same arguments. Raises: as `evaluate`."""
    return run_blocking(lambda: evaluate(*given, **named))


def program_of(
    unit: Unit,
    data: DataLike | None,
    metric: Any,
    *,
    replicates: int | None = None,
    split: str | None = None,
    limit: int | None = None,
    filter: str | None = None,  # noqa: A002 - as on the command line
    shares: Sequence[int] = SHARES,
    slots: int = WIDTH,
    max_errors: int | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> EvaluationProgram:
    """The evaluation that the arguments of `evaluate` and the workflow's `evaluation` describe.

    Raises: `BuildError`, `InputError`.
    """
    spec = unit.document.evaluation or EvaluationSpec()
    around = environment_of(
        unit, **(environment or dict.fromkeys(("prepare", "check", "tear_down")))
    )
    given = spec.metrics or None if metric is None else from_here(metric, unit.folder)
    metrics = metrics_of(given, unit.folder)
    main_metric(metrics, around)
    chosen = _dataset(unit, data, spec, filter, shares)
    split, limit = split or spec.split, limit or spec.limit
    if split is not None:
        chosen = chosen.split(split)
    chosen = chosen[:limit].fitting(unit.document)
    taken = {"split": split, "limit": limit, "filter": filter}
    if not chosen:
        hint = "look at --filter, --split and the file"
        raise InputError(f"{chosen.name} has no case that is left", hint=hint)
    counts = {"replicates": replicates, "slots": slots, "max_errors": max_errors}
    for name, least in (("replicates", 1), ("slots", 1), ("max_errors", 0)):
        value = counts[name]
        if value is not None and value < least:
            raise InputError(f"{name} is {value}", hint=f"at least {least}")
    return EvaluationProgram(
        unit,
        chosen,
        metrics,
        around,
        replicates or spec.replicates,
        slots,
        max_errors,
        {key: value for key, value in taken.items() if value is not None},
    )


def _dataset(
    unit: Unit,
    data: DataLike | None,
    spec: EvaluationSpec,
    keep: str | None,
    shares: Sequence[int],
) -> Dataset:
    """The data given, by the columns of the workflow's; else the workflow's own."""
    columns: DataSpec | None = spec.data
    mapping: dict[str, Any] = {}
    if columns is not None:
        fields = ("inputs", "expected", "id", "group")
        mapping = {name: getattr(columns, name) or None for name in fields}
    if data is not None:
        return cases(data, filter=keep, shares=shares, **mapping)
    if columns is None:
        hint = "--data cases.jsonl, or `data` under `evaluation` of the workflow"
        raise BuildError(f"`{unit.document.name}` has no data to be evaluated on", hint=hint)
    return cases(columns.file, filter=keep, shares=shares, folder=unit.folder, **mapping)


class EvaluationRun:
    """One run of an evaluation: `start` prepares it, `result` reads it when it has ended."""

    def __init__(self, program: EvaluationProgram) -> None:
        self.program = program
        self.unit = program.composed()
        self._items = program.items()
        self._trace = Trace()
        self._run: FlowRun[Any] | None = None

    def start(self, settings: Mapping[str, Any], resume: str | None = None) -> FlowRun[Any]:
        """Prepare the run, with these `RunSettings`; or go on with the run `resume`.

        Raises: `BuildError`, `InputError`, `StoreError`.
        """
        given = dict(settings)
        cap = ErrorCap(self.program.max_errors)
        given["listeners"] = [*given.get("listeners", ()), self._trace, *cap.listeners]
        if resume is None:
            given["notes"] = {**self.program.notes(), **given.get("notes", {})}
            run: FlowRun[Any] = FlowRun(self.unit, {ITEMS: self._items}, RunSettings(**given))
        else:
            run = self._resumed(resume, given)
        cap.run = self._run = run
        return run

    def _resumed(self, run: str, settings: dict[str, Any]) -> FlowRun[Any]:
        with journal_or_own(settings.pop("journal", None)) as (journal, own):
            recorded = journal.header(find_run(journal, run)).settings
            if not is_evaluation(recorded):
                hint = "`weft runs` lists the runs"
                raise InputError(f"{run} is no evaluation", hint=hint)
            width = recorded[NOTES].get("slots", self.program.width)  # a part of its workflow
            self.unit = replace(self.program, width=width).composed()
            claimed = claim_run(journal, run, unit=self.unit)
            for event in claimed.history.events:
                self._trace(event)
            return resume_run(claimed, own=own, **settings)

    def result(self) -> EvaluationResult:
        """The evaluation as far as it has come."""
        run = self._run.id if self._run is not None and self._run.recorded else ""
        notes = {NOTES: self.program.notes()[NOTES]}
        return evaluation_of(run, notes, self._items, self._trace, self.program.metrics)


class ErrorCap:
    """Ends a run once more than `most` cases have failed; resumed, it tries those again."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._failed = 0
        self.run: FlowRun[Any] | None = None

    @property
    def listeners(self) -> tuple[Subscription, ...]:
        """What the run has to tell it."""
        return () if self._most is None else (Subscription(frozenset((NodeFinished,)), self),)

    def __call__(self, event: Event) -> None:
        if not isinstance(event, NodeFinished) or event.outcome.status != "failed":
            return
        place = item_of(event.node)
        if place is None or place[1:] != (RUN, "") or event.recalled:
            return
        self._failed += 1
        if self._most is not None and self._failed == self._most + 1 and self.run is not None:
            reason = f"more than {self._most} cases have failed (max_errors)"
            asyncio.get_running_loop().call_soon(self.run.cancel, reason)


def read_result(
    run: str = "last",
    *,
    journal: JournalPlace | None = None,
    metric: MetricsLike | None = None,
) -> EvaluationResult:
    """A recorded evaluation; with `metric` scored by that instead, without a model call.

    `journal`: a path, an address or an open journal; by default the user's own.
    Raises: `UnknownReference`, `InputError` where the run is no evaluation, `BuildError` for a
    metric that asks a model, `StoreError`.
    """
    metrics = metrics_of(metric, Path.cwd())
    check_offline(metrics)
    if journal is not None and not isinstance(journal, str | Path):
        return read_evaluation(read_history(journal, find_run(journal, run)), metrics)
    with closing(open_journal(journal, make=journal is None, to_read=True)) as opened:
        return read_evaluation(read_history(opened, find_run(opened, run)), metrics)
