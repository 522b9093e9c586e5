"""The record of one run: opened before it begins, written while it runs, closed at its end.

See `weft.workflow.history` for the uses of records.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from weft.core.calls import CallEvent, ToolCalled, ToolReturned
from weft.core.errors import RunExists, StoreError
from weft.core.events import GraphGrew, NodeRerouted
from weft.core.ids import NodeId, RunId, matches, run_ids
from weft.core.loggers import logger
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Claim, Journal, Letter, Record, RunHeader
from weft.core.ports.queue import QueueTerms, queue_of
from weft.durability.calls import CallLog, Confirmation, RecordRedactor, Redactor
from weft.durability.calls.history import OnceMemory
from weft.engine.graph.node import QUESTION
from weft.engine.runner.recorder import RunRecorder
from weft.engine.scheduler.effects import EffectLedger, UnsettledEffect
from weft.engine.scheduler.resume_state import NO_HISTORY, ResumeState
from weft.validation import misfit
from weft.workflow.compile.sources import SourceDigests, is_from_file
from weft.workflow.document.spec.fields import parse_duration
from weft.workflow.document.unit import Unit
from weft.workflow.queue.versions import version_of
from weft.workflow.runtime.boundary import BoundaryModels, RecordingBoundary, recorded_models
from weft.workflow.runtime.compiled import CompiledFlow
from weft.workflow.runtime.journals import JOURNALS, PooledJournal
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.options import RunSettings
from weft.workflow.runtime.telemetry import CallListener, CallObserver
from weft.workflow.runtime.tools.toolset import Toolset

_logger = logger("journal")
_WEFT = version("weft")
_FEW = 16
"""Runs of one workflow with the same inputs that get numbered ids; further ids use the clock."""


@dataclass(frozen=True, slots=True)
class PriorRun:
    """The history that a run builds on: its own earlier parts, or another run.

    `claim` is the right to write to `run`, if that has begun; without it a new run begins.
    `records` are the run's own of earlier parts, `signals` those that were waiting for it.
    `notes`: additional settings in a new run's record. `own`: a journal that is closed with the
    run. `digests`: of the same version as in the record of `recall`. `unsure` as in `Losses`.
    `gone`: nodes that the workflow no longer has.
    """

    recall: ResumeState
    redactor: Redactor
    claim: Claim | None = None
    records: tuple[Record, ...] = ()
    confirmed: Mapping[str, Confirmation] = field(default_factory=dict)
    signals: tuple[Letter, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    own: Journal | None = None
    digests: SourceDigests | None = None
    unsure: bool = False
    gone: frozenset[str] = frozenset()

    def effects(self) -> EffectLedger:
        """The run's calls that must not be repeated, with those of its earlier parts."""
        memory = OnceMemory()
        for record in self.records:
            if isinstance(record, ToolCalled | ToolReturned):
                memory.add(record)
        acted = [call for call in memory.everything() if call.has_acted]
        confirmed = [where.partition("@")[0] for where in self.confirmed]
        undecided = [
            UnsettledEffect(call.called.node, call.called.tool)
            for call in acted
            if isinstance(call.called, ToolCalled)
            and call.stands_open
            and not any(matches(pattern, call.called.node) for pattern in confirmed)
        ]
        deciders = [
            record.parent if isinstance(record, GraphGrew) else record.node
            for record in self.records
            if (
                isinstance(record, GraphGrew)
                and record.results is None
                and not all(info.kind == QUESTION for info in record.nodes)
            )
            or (isinstance(record, NodeRerouted) and record.instead)
        ]
        makers = (call.called.node for call in acted)
        return EffectLedger(makers, undecided, deciders=deciders, guarded=True)


class RunRecording:
    """The record of a run, and the history of its earlier parts.

    Opens a journal unless `settings` names one. `redact` is applied to the run's calls here, and to
    its events where they are emitted. `observer` is notified of calls.

    Raises: `StoreError`, `RunExists`.
    """

    def __init__(
        self,
        unit: Unit,
        inputs: Mapping[str, Any],
        settings: RunSettings,
        compiled: CompiledFlow,
        past: PriorRun | None,
        redactor: Redactor,
        redact: RecordRedactor,
        observer: CallObserver | None = None,
    ) -> None:
        self._observer = CallListener(observer)
        self._only_journal = observer is None
        self._redactor = redactor
        self._redact = redact
        self._own = None if past is None else past.own
        self._lent: PooledJournal | None = None
        journal = settings.journal
        if journal is None or isinstance(journal, str | Path):
            self._lent = JOURNALS.lend(journal)
            journal = self._lent.journal
        self.journal = journal
        self._past = past
        self._calls: CallLog | None = None
        self._is_new = past is None or past.claim is None or settings.run is None
        try:
            if past is not None and past.claim is not None and settings.run is not None:
                self.run, self._claim = RunId(settings.run), past.claim
            else:
                sources = compiled.redacted_sources(redactor)
                notes = {} if past is None else past.notes
                header = run_header(unit, inputs, settings, sources, redactor, notes)
                self.run, self._claim = begin_run(
                    journal,
                    _beginning(journal, settings.failover_queue),
                    header,
                    inputs,
                    settings.run,
                )
        except BaseException:
            self._let_go()
            raise
        durability = settings.durability_of(unit)
        signals = () if past is None else past.signals
        wait = settings.journal_wait
        self.recorder = RunRecorder(
            journal,
            self.run,
            durability,
            letters=signals,
            patience_s=unit.document.run.journal_wait if wait is None else parse_duration(wait),
            redactions=redact,
        )

    @property
    def recall(self) -> ResumeState | None:
        """The history of finished nodes, None for a new run."""
        return None if self._past is None else self._past.recall

    @property
    def recalled_calls(self) -> int:
        """How many calls were answered from the record."""
        return 0 if self._calls is None else self._calls.recalled

    def intercept_calls(
        self,
        tools: Toolset,
        models: ModelSource,
        given: Container[str],
        log: Callable[[NodeId, str], None],
    ) -> BoundaryModels:
        """Record the calls of `tools`, and of the returned models."""
        past = self._past or PriorRun(NO_HISTORY, self._redactor)
        call_log = self._calls = CallLog(
            self.run,
            self.recorder.seconds,
            self._write,
            past=past.records,
            confirmed=past.confirmed,
            gone=past.gone,
            redactor=self._redactor,
            log=log,
            unsure=past.unsure,
            misfit=misfit,
        )
        tools.put(RecordingBoundary(call_log))
        return recorded_models(models, call_log, given)

    def _write(self, event: CallEvent, durable: bool) -> Awaitable[None] | None:
        if not durable and self._only_journal and self.recorder.defer(event):
            return None
        for redacted in self._redact(event):
            self._observer.tell(redacted)
            self.recorder.add(redacted)
        return self.recorder.settle() if durable else None

    def withdraw(self) -> None:
        """Close the record of a run that did not begin: the id of a new one is free again."""
        if self._is_new:
            with suppress(StoreError):  # then it stays, as a run that was interrupted
                self.journal.withdraw(self.run)
        self.close()

    def close(self) -> None:
        """Release the run and the journal. Harmless when repeated."""
        self._claim.release()
        self._let_go()

    def _let_go(self) -> None:
        if self._own is not None:
            self._own.close()
        lent, self._lent = self._lent, None
        if lent is not None:
            JOURNALS.give_back(lent)


def run_header(
    unit: Unit,
    inputs: Mapping[str, Any],
    settings: RunSettings,
    sources: Mapping[str, str],
    redactor: Redactor,
    notes: Mapping[str, Any],
) -> RunHeader:
    """The header of a new run, without an id. `sources`: redacted; `notes`: further settings."""
    recorded = {**settings.recorded(), **notes}
    if is_from_file(unit):
        recorded["folder"] = str(unit.root)
    return RunHeader(
        RunId(""),
        unit.document.name,
        (settings.clock or SystemClock()).wall().isoformat(timespec="milliseconds"),
        _WEFT,
        redactor.redact(dict(inputs)),
        sources,
        redactor.redact(recorded),
        redactor.names,
    )


def _beginning(journal: Journal, queue: str | None) -> Callable[[RunHeader], Claim]:
    """How a run begins: with a place in `queue`, if one is named. Raises: `StoreError`."""
    if queue is None:
        return journal.begin
    runs = queue_of(journal)
    return lambda header: runs.begin(header, QueueTerms(version_of(header.document), queue))


def begin_run(
    journal: Journal,
    begin: Callable[[RunHeader], Claim],
    header: RunHeader,
    inputs: Mapping[str, Any],
    named: str | None,
) -> tuple[RunId, Claim]:
    """Begin a run under the id `named`, or under the first free id. Raises: `RunExists`."""
    if named is not None:
        return RunId(named), begin(replace(header, run=RunId(named)))
    ids = run_ids(header.flow, inputs, (*range(_FEW), time.time_ns()))
    first = next(ids)
    if not journal.taken([first]):  # usually one query is enough
        with suppress(RunExists):
            return first, begin(replace(header, run=first))
    *numbered, last = ids
    taken = journal.taken(numbered)
    for run in (*(run for run in numbered if run not in taken), last):
        try:
            return run, begin(replace(header, run=run))
        except RunExists:
            continue
    raise RunExists(f"the journal has the run {run!r}", hint="begin it once more")
