"""`optimise`: a workflow that gets better, faster or cheaper, with proof, as one recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from weft.core.errors import InputError
from weft.core.keywords import refuses_unknown_keywords
from weft.core.ports import Clock, ModelClient, ToolRunner
from weft.core.ports.clock import SystemClock
from weft.evaluation.case import SHARES
from weft.evaluation.dataset import DataLike
from weft.evaluation.metrics import MetricsLike
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.opening import ModelsLike, StudyOpening
from weft.optimisation.propose.registry import ProposerLike, declared_proposers
from weft.optimisation.record import STUDY, StudyRecord, check_study, find_study
from weft.optimisation.result import StudyResult
from weft.optimisation.study import Study
from weft.optimisation.study_options import (
    CALLS_PER_CASE,
    GoalName,
    StudyOptions,
    parse_budget,
)
from weft.workflow import Flow
from weft.workflow.document.secrets import replaying_redactor
from weft.workflow.document.spec.optimise import OptimiseSpec
from weft.workflow.history.recorded_workflow import rebuild_unit
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.journals import JournalPlace, journal_or_own


@refuses_unknown_keywords
async def optimise(
    flow: AnyFlow,
    data: DataLike | None = None,
    metric: MetricsLike | None = None,
    *,
    goal: GoalName | None = None,
    keep: Mapping[str, float] | None = None,
    budget: object = None,
    proposers: Sequence[ProposerLike] = (),
    proposer_model: str | ModelClient | None = None,
    canaries: DataLike | None = None,
    replicates: int | None = None,
    shares: Sequence[int] = SHARES,
    seed: int = 0,
    slots: int = 16,
    workers: int | None = None,
    limits: Mapping[str, int] | None = None,
    calls_per_case: int = CALLS_PER_CASE,
    models: ModelsLike | None = None,
    tools: ToolRunner | None = None,
    journal: JournalPlace | None = None,
    run: str | None = None,
    resume: str | None = None,
    more: object = None,
    clock: Clock | None = None,
    watch: Callable[[Study], None] | None = None,
) -> StudyResult:
    """Look for a better workflow, and show on cases that no choice was made by whether it is one.

        study = await weft.optimise(flow, "cases.jsonl", "exact", budget="2usd", keep={"p95_s": 4})
        study.verdict.kind, study.front[0].scores, study.best.patch
        better = study.best.apply(flow)

    It is one recorded run: killed at any moment, `weft resume` or `resume` goes on with it, and no
    finished model call is made again. What is not given is taken from `evaluation` and `optimise`
    of the workflow.

    Args:
        data, metric, replicates, shares: as for `weft.evaluate`; the first metric is the quality
        goal: quality, latency (p95) or cost
        keep: how much worse others may get, `{"quality": 0.02}`; or their limits, `{"p95_s": 4}`
        budget: what everything together may take: a number of model calls, a text such as
            `"2usd, 1h"`, or a mapping of calls, tokens, money and seconds
        proposers: names, mappings `{name: NAME, OPTION: VALUE}`, or functions that make one of a
            context and knobs. Declared knobs are tried without any
        proposer_model: whom proposers ask: a model of the workflow by name, or a client
        canaries: cases that no honest answer gets right; who gains on them gains by the metric
        slots: at most so many runs of candidates at once
        workers, limits: nodes, and calls of a model or tool, at once, for measured and predicted
            times; `limits` hold for all runs together
        calls_per_case: the most model calls of a case where the workflow does not say it
        models: clients by name, or a source of all of them
        tools: stubs of tools that must not be called again and again
        journal: where it is recorded; by default as other runs are
        run: the id of a new study; `resume`: the study to go on with, by its own options
        more: what a resumed study, ended or not, may take besides its budget, as `budget`
        watch: called with the study when it begins; its `stop()` ends it with the front so far

    Raises: `BuildError`, `InputError` (also for a resumed study with another workflow or data),
    `StoreError`. A case that fails does not raise. Cancelled, it can be resumed.
    """
    opening = StudyOpening(
        flow, data, metric, models, tools, clock or SystemClock(), proposers, proposer_model
    )
    if more is not None and resume is None:
        raise InputError("`more` is for a study that is resumed", hint="budget=..., or resume=RUN")
    if resume is None:
        spec = flow.document.optimise or OptimiseSpec()
        named = (
            {}
            if budget is None and spec.budget is None
            else parse_budget(spec.budget if budget is None else budget)
        )
        asked = None if spec.proposer is None else spec.proposer.model
        options = StudyOptions(
            goal or spec.goal or "quality",
            dict(spec.keep if keep is None else keep),
            shares=tuple(shares),
            seed=seed,
            slots=slots,
            workers=workers,
            limits=dict(limits or {}),
            calls_per_case=calls_per_case,
            proposer_model=proposer_model if isinstance(proposer_model, str) else asked,
            proposers=tuple(
                each for each in proposers or declared_proposers(spec) if not callable(each)
            ),
            **named,
        )
        opened = opening.begun(options, replicates, canaries, journal, run)
    else:
        opened = opening.resumed(resume, journal, more)
    with opened as study:
        if watch is not None:
            watch(study)
        return await study.run()


def optimise_sync(
    *given: Any, watch: Callable[[Study], None] | None = None, **named: Any
) -> StudyResult:
    """`optimise` for scripts and notebooks; the same arguments. Ctrl-C ends it with what it has
    found so far, which can be resumed. Raises: as `optimise`.
    """

    def begin(own: Callable[[Study], None]) -> Coroutine[Any, Any, StudyResult]:
        def both(study: Study) -> None:
            own(study)
            if watch is not None:
                watch(study)

        return optimise(*given, watch=both, **named)

    return run_blocking(lambda: until_interrupted(begin))


async def until_interrupted(
    begin: Callable[[Callable[[Study], None]], Coroutine[Any, Any, StudyResult]],
) -> StudyResult:
    """The result of the study that `begin` runs and has watched; cancelled once, it stops."""
    studies: list[Study] = []
    running = asyncio.create_task(begin(studies.append))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if not studies:
            running.cancel()
            raise
        studies[0].stop()
        return await running


async def resume_study(
    run: str = "last",
    *,
    journal: JournalPlace | None = None,
    models: ModelsLike | None = None,
    more: object = None,
    watch: Callable[[Study], None] | None = None,
) -> StudyResult:
    """Go on with a study whose workflow and metrics are in files; `more`: see `optimise`.

    Raises: `BuildError` where they are not, or have changed; `InputError`, `StoreError`.
    """
    with journal_or_own(journal) as (opened, own):
        header = opened.header(find_study(opened, run))
        flow: AnyFlow = Flow.of(rebuild_unit(header))
    if own is not None:
        own.close()
    return await optimise(flow, models=models, journal=journal, resume=run, more=more, watch=watch)


def read_study(run: str = "last", *, journal: JournalPlace | None = None) -> StudyResult:
    """The result of a recorded study that has ended.

    Raises: `UnknownReference`, `InputError` where it is no study or has not ended, `StoreError`.
    """
    return recorded_result(_history(run, journal))


def recorded_result(history: RunHistory) -> StudyResult:
    """The result in a record. Raises: `InputError` where it is no study or has not ended."""
    check_study(history)
    outcome = history.outcomes.get(STUDY)
    if outcome is None:
        hint = f"go on with it: weft resume {history.run}"
        raise InputError(f"the study {history.run} has not ended", hint=hint)
    value = replaying_redactor(history.header.secrets).restore(outcome.value)
    return StudyResult.read(value)


async def replay_study(
    run: str = "last",
    flow: AnyFlow | None = None,
    *,
    journal: JournalPlace | None = None,
    metric: MetricsLike | None = None,
    proposers: Sequence[ProposerLike] = (),
) -> StudyResult:
    """Search again from the record alone: no model and no tool is called.

    Raises: `InputError` where the record does not have all of it, and as `optimise`.
    """
    return await replayed_study(_history(run, journal), flow, metric, proposers)


async def replayed_study(
    history: RunHistory,
    flow: AnyFlow | None = None,
    metric: MetricsLike | None = None,
    proposers: Sequence[ProposerLike] = (),
) -> StudyResult:
    """As `replay_study`, of a record that was read already."""
    flow = Flow.of(rebuild_unit(history.header)) if flow is None else flow
    opening = StudyOpening(flow, None, metric, None, None, SystemClock(), proposers, None)
    record = StudyRecord.read(history, flow.unit, opening.clock)
    with opening.made(record, history, None, offline=True) as study:
        return await study.run()


def _history(run: str, journal: JournalPlace | None) -> RunHistory:
    with journal_or_own(journal) as (opened, own):
        try:
            return read_history(opened, find_study(opened, run))
        finally:
            if own is not None:
                own.close()
