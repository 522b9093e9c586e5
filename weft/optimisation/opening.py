"""What a study begins with, or goes on with: its workflow, data and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from weft.core.errors import BuildError, InputError, UnknownReference
from weft.core.ports import Clock, ModelClient, ToolRunner
from weft.core.ports.journal import Journal
from weft.core.suggestion import suggestion
from weft.evaluation.case import Case, digest_of
from weft.evaluation.dataset import DataLike, Dataset, cases
from weft.evaluation.evaluate import program_of
from weft.evaluation.metrics import MetricsLike
from weft.evaluation.program import EvaluationProgram
from weft.optimisation.edits.patch import AnyFlow, document_digest
from weft.optimisation.notes import NOTES
from weft.optimisation.propose.registry import ProposerLike, check_proposers, named
from weft.optimisation.record import StudyRecord, check_study, find_study
from weft.optimisation.study import Study, StudyCases
from weft.optimisation.study_options import (
    StudyOptions,
    extended_options,
    more_limits,
    plain_options,
    recorded_options,
)
from weft.optimisation.table import check_repeatable
from weft.workflow.document.unit import Unit
from weft.workflow.history.resume import RunSucceeded
from weft.workflow.history.run_history import RunHistory, read_history
from weft.workflow.runtime.journals import JournalPlace, journal_or_own
from weft.workflow.runtime.models.factory import GivenModels, Models, ModelSource
from weft.workflow.runtime.options import has_fakes

ModelsLike: TypeAlias = Mapping[str, ModelClient] | ModelSource


class StudyOpening:
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
        found = StudyCases.of(program.data, self._canaries(canaries, program), options.shares)
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
    def resumed(
        self, run: str, journal: JournalPlace | None, more: object = None
    ) -> Iterator[Study]:
        """A study of the journal, from where it was; `more`: what it may take besides."""
        with journal_or_own(journal) as (opened, own):
            history = read_history(opened, find_study(opened, run))
            self._check_unchanged(history)
            self._check_parts(history, offline=False)
            given = None
            if more is not None:
                given = more_limits(recorded_options(check_study(history)["options"]), more)
            elif history.ended is not None and history.ended.status == "succeeded":
                raise RunSucceeded(history.run)
            record = StudyRecord.reopen(opened, history.run, self.flow.unit, self.clock)
            try:
                if given is not None:
                    record.extend(given)
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
        self._check_parts(history, offline=offline)
        recorded = record.redactor.restore(list(history.header.inputs["cases"]))
        made = [Case(**each) for each in recorded]
        count = notes["data"]["cases"]
        data = Dataset(made[:count], notes["data"]["name"])
        metric = self._metric if self._metric is not None else dict(notes["metrics"])
        kept = {name: notes.get(name) for name in ("prepare", "check", "tear_down")}
        options = extended_options(recorded_options(notes["options"]), record.extensions)
        program = replace(
            self._program(data, notes["replicates"], options.shares, metric, kept), data=data
        )
        found = StudyCases.of(data, made[count:], options.shares)
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
        unit = without_split(self.flow.unit)
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
                "python": self._in_python,
            }
        }

    @property
    def _in_python(self) -> list[str]:
        """The parts that exist only in this process, which must be given again."""
        own = [named(each) for each in self._proposers if callable(each)]
        return own if self._asked is None else [*own, f"proposer_model {self._asked.model}"]

    def _check_parts(self, history: RunHistory, *, offline: bool) -> None:
        """Raises: `InputError` where a part of the study is missing here."""
        wanted = check_study(history)["python"]
        if offline:  # nobody is asked
            wanted = [name for name in wanted if not name.startswith("proposer_model ")]
        missing = [name for name in wanted if name not in self._in_python]
        if missing:
            hint = f"in Python: weft.optimise(flow, ..., resume={history.run!r})"
            what = f"the study {history.run} began with {', '.join(missing)}: give them again"
            raise InputError(what, hint=hint)

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


def without_split(unit: Unit) -> Unit:
    """The workflow, whose evaluation takes all cases: a study splits them itself."""
    spec = unit.document.evaluation
    if spec is None or (spec.split is None and spec.limit is None):
        return unit
    all_cases = spec.model_copy(update={"split": None, "limit": None})
    return replace(unit, document=unit.document.model_copy(update={"evaluation": all_cases}))
