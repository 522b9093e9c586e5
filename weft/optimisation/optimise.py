"""`optimise`: a workflow that gets better, faster or cheaper, with proof, as one recorded run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from weft.core.errors import BuildError, InputError, UnknownReference
from weft.core.ports import Clock, ModelClient, ToolRunner
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Journal
from weft.core.suggestion import suggestion
from weft.evaluation.case import SHARES, Case, digest_of
from weft.evaluation.dataset import DataLike, Dataset, cases
from weft.evaluation.evaluate import program_of
from weft.evaluation.metrics import MetricsLike
from weft.evaluation.program import EvaluationProgram
from weft.optimisation.edits.patch import AnyFlow, document_digest
from weft.optimisation.notes import NOTES
from weft.optimisation.propose.registry import ProposerLike, check_proposers
from weft.optimisation.record import STUDY, StudyRecord, check_study
from weft.optimisation.result import StudyResult
from weft.optimisation.study import Study, StudyCases
from weft.optimisation.study_options import (
    CALLS_PER_CASE,
    GoalName,
    StudyOptions,
    parse_budget,
    plain_options,
    recorded_options,
)
from weft.optimisation.table import check_repeatable
from weft.workflow import Flow
from weft.workflow.document.secrets import replaying_redactor
from weft.workflow.document.spec.optimise import OptimiseSpec
from weft.workflow.document.unit import Unit
from weft.workflow.history.recorded_workflow import rebuild_unit
from weft.workflow.history.resume import RunSucceeded
from weft.workflow.history.run_history import RunHistory, find_run, read_history
from weft.workflow.runtime.blocking import run_blocking
from weft.workflow.runtime.journals import JournalPlace, journal_or_own
from weft.workflow.runtime.models.factory import GivenModels, Models, ModelSource
from weft.workflow.runtime.options import has_fakes

ModelsLike = Mapping[str, ModelClient] | ModelSource


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
        watch: called with the study when it begins; its `stop()` ends it with the front so far

    Raises: `BuildError`, `InputError` (also for a resumed study with another workflow or data),
    `StoreError`. A case that fails does not raise. Cancelled, it can be resumed.
    """
    opening = Opening(
        flow, data, metric, models, tools, clock or SystemClock(), proposers, proposer_model
    )
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
            proposers=tuple(each for each in proposers or _declared(spec) if not callable(each)),
            **named,
        )
        opened = opening.begun(options, replicates, canaries, journal, run)
    else:
        opened = opening.resumed(resume, journal)
    with opened as study:
        if watch is not None:
            watch(study)
        return await study.run()


def optimise_sync(*given: Any, **named: Any) -> StudyResult:
    """`optimise` for scripts and notebooks; the same arguments. Ctrl-C ends it with what it has
    found so far, which can be resumed. Raises: as `optimise`.
    """
    return run_blocking(
        lambda: until_interrupted(lambda watch: optimise(*given, watch=watch, **named))
    )


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
    watch: Callable[[Study], None] | None = None,
) -> StudyResult:
    """Go on with a study whose workflow and metrics are in files.

    Raises: `BuildError` where they are not, or have changed; `InputError`, `StoreError`.
    """
    with journal_or_own(journal) as (opened, own):
        header = opened.header(find_run(opened, run))
        flow: AnyFlow = Flow.of(rebuild_unit(header))
    if own is not None:
        own.close()
    return await optimise(flow, models=models, journal=journal, resume=run, watch=watch)


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
    opening = Opening(flow, None, metric, None, None, SystemClock(), proposers, None)
    record = StudyRecord.read(history, flow.unit, opening.clock)
    with opening.made(record, history, None, offline=True) as study:
        return await study.run()


def _declared(spec: OptimiseSpec) -> Sequence[ProposerLike]:
    return () if spec.proposer is None else tuple(spec.proposer.use)


def _history(run: str, journal: JournalPlace | None) -> RunHistory:
    with journal_or_own(journal) as (opened, own):
        try:
            return read_history(opened, find_run(opened, run))
        finally:
            if own is not None:
                own.close()


class Opening:
    """What a study is made of besides its options: all that lives in this process only."""

    def __init__(
        self,
        flow: AnyFlow,
        data: DataLike | None,
        metric: MetricsLike | None,
        models: ModelsLike | None,
        tools: ToolRunner | None,
        clock: Clock,
        proposers: Sequence[ProposerLike],
        proposer_model: str | ModelClient | None,
    ) -> None:
        self.flow = flow
        self.clock = clock
        self._data = data
        self._metric = metric
        self._models = models
        self._tools = tools
        self._proposers = tuple(proposers)
        self._asked = None if isinstance(proposer_model, str) else proposer_model
        check_repeatable(flow.unit, tools)
        check_proposers(self._proposers)

    @contextmanager
    def begun(
        self,
        options: StudyOptions,
        replicates: int | None,
        canaries: DataLike | None,
        journal: JournalPlace | None,
        run: str | None,
    ) -> Iterator[Study]:
        """A new study, recorded unless its models or tools are stubs and no journal is named."""
        check_proposers(options.proposers)
        program = self._program(self._data, replicates, options.shares)
        found = StudyCases.of(program.data, self._canaries(canaries, program))
        stubs = isinstance(self._models, Mapping) or self._tools or has_fakes(self.flow.unit)
        if journal is None and stubs:
            yield from self._study(program, found, options, StudyRecord(self.clock))
            return
        with journal_or_own(journal) as (opened, own):
            about = self._notes(program, found, options)
            plain = [case.data for case in (*program.data, *found.canaries)]
            record = StudyRecord.begin(opened, self.flow.unit, plain, about, self.clock, run)
            yield from self._closing(program, found, options, record, own)

    @contextmanager
    def resumed(self, run: str, journal: JournalPlace | None) -> Iterator[Study]:
        """A study of the journal, from where it was."""
        with journal_or_own(journal) as (opened, own):
            history = read_history(opened, find_run(opened, run))
            check_study(history)
            self._check_unchanged(history)
            if history.ended is not None and history.ended.status == "succeeded":
                raise RunSucceeded(history.run)
            record = StudyRecord.reopen(opened, history.run, self.flow.unit, self.clock)
            try:
                with self.made(record, history, own) as study:
                    yield study
            finally:
                record.close()

    @contextmanager
    def made(
        self,
        record: StudyRecord,
        history: RunHistory,
        own: Journal | None,
        *,
        offline: bool = False,
    ) -> Iterator[Study]:
        """The study of a record."""
        notes = check_study(history)
        self._check_unchanged(history)
        recorded = record.redactor.restore(list(history.header.inputs["cases"]))
        made = [Case(**each) for each in recorded]
        count = notes["data"]["cases"]
        data = Dataset(made[:count], notes["data"]["name"])
        metric = self._metric if self._metric is not None else dict(notes["metrics"])
        kept = {name: notes.get(name) for name in ("prepare", "check", "tear_down")}
        options = recorded_options(notes["options"])
        program = replace(
            self._program(data, notes["replicates"], options.shares, metric, kept), data=data
        )
        found = StudyCases.of(data, made[count:])
        yield from self._closing(program, found, options, record, own, offline=offline)

    def _closing(
        self,
        program: EvaluationProgram,
        found: StudyCases,
        options: StudyOptions,
        record: StudyRecord,
        own: Journal | None,
        *,
        offline: bool = False,
    ) -> Iterator[Study]:
        try:
            yield from self._study(program, found, options, record, offline=offline)
        finally:
            record.close()
            if own is not None:
                own.close()

    def _study(
        self,
        program: EvaluationProgram,
        found: StudyCases,
        options: StudyOptions,
        record: StudyRecord,
        *,
        offline: bool = False,
    ) -> Iterator[Study]:
        own = Models()
        source = self._source(own)
        asked = self._asked
        if asked is None and options.proposer_model is not None:
            unit = self.flow.unit
            if options.proposer_model not in unit.document.models:
                hint = f"its models: {', '.join(unit.document.models) or 'none'}"
                what = f"the proposers' model `{options.proposer_model}` is none of the workflow's"
                raise BuildError(what, hint=hint)
            asked = source.client(unit, options.proposer_model)
        settings = {} if self._tools is None else {"stubs": self._tools}
        yield Study(
            program,
            found,
            options,
            record,
            source,
            self.clock,
            self._proposers,
            asked,
            settings,
            offline,
            own,
        )

    def _source(self, own: Models) -> ModelSource:
        given = self._models
        if given is None:
            return own
        if not isinstance(given, Mapping):
            return given
        known = {name for unit in self.flow.unit.everything() for name in unit.document.models}
        for name in given:
            if name not in known:
                hint = suggestion(name, known)
                raise UnknownReference(f"there is no model called `{name}`", hint=hint)
        return GivenModels(given, own)

    def _program(
        self,
        data: DataLike | None,
        replicates: int | None,
        shares: Sequence[int],
        metric: Any = None,
        around: Mapping[str, str | None] | None = None,
    ) -> EvaluationProgram:
        given = self._metric if metric is None else metric
        unit = _without_split(self.flow.unit)
        return program_of(
            unit, data, given, replicates=replicates, shares=shares, environment=around
        )

    def _canaries(self, given: DataLike | None, program: EvaluationProgram) -> Sequence[Case]:
        spec = self.flow.document.optimise
        declared = None if spec is None else spec.canaries
        document = program.unit.document
        if given is not None:
            return tuple(cases(given).fitting(document))
        if declared is None:
            return ()
        fields = ("inputs", "expected", "id", "group")
        mapping: dict[str, Any] = {name: getattr(declared, name) or None for name in fields}
        found = cases(declared.file, folder=self.flow.unit.folder, **mapping)
        return tuple(found.fitting(document))

    def _notes(
        self, program: EvaluationProgram, found: StudyCases, options: StudyOptions
    ) -> dict[str, Any]:
        about = program.notes()["evaluation"]
        kept = ("flow", "data", "replicates", "metrics", "prepare", "check", "tear_down")
        return {
            NOTES: {
                **{name: about[name] for name in kept if name in about},
                "document": document_digest(self.flow.document),
                "held_out": found.held_out_digest,
                "splits": found.sizes,
                "options": plain_options(options),
            }
        }

    def _check_unchanged(self, history: RunHistory) -> None:
        """Raises: `InputError` for another workflow, or other data, than those of the record."""
        notes = check_study(history)
        hint = "begin a new study"
        if notes["document"] != document_digest(self.flow.document):
            what = f"the workflow of the study {history.run} has changed since it began"
            raise InputError(what, hint=hint)
        if self._data is not None:
            spec = self.flow.document.evaluation
            options = recorded_options(notes["options"])
            given = self._program(self._data, notes["replicates"], options.shares).data
            del spec
            if digest_of(given) != notes["data"]["digest"]:
                raise InputError(f"the study {history.run} began with other data", hint=hint)


def _without_split(unit: Unit) -> Unit:
    """The workflow, whose evaluation takes all cases: a study splits them itself."""
    spec = unit.document.evaluation
    if spec is None or (spec.split is None and spec.limit is None):
        return unit
    all_cases = spec.model_copy(update={"split": None, "limit": None})
    return replace(unit, document=unit.document.model_copy(update={"evaluation": all_cases}))
