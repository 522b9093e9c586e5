"""The record of one run: opened before it begins, written while it goes on, closed at its end.

Knows no graph. See `weft.workflow.history` for what is done with records.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from weft.core.calls import CallEvent, ToolCalled, ToolReturned
from weft.core.errors import RunExists
from weft.core.events import GraphGrew, NodeRerouted
from weft.core.ids import NodeId, RunId, matches, run_ids
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Claim, Journal, Letter, Record, RunHeader
from weft.core.redaction import SecretFilter
from weft.durability.calls import CallLog, Confirmation, RecordRedactor, Redactor
from weft.durability.calls.history import OnceMemory
from weft.engine.runner.recorder import RunRecorder
from weft.engine.scheduler.effects import EffectLedger, UnsettledEffect
from weft.engine.scheduler.resume_state import NO_HISTORY, ResumeState
from weft.validation import misfit
from weft.workflow.compile.sources import SourceDigests, stands_in_file
from weft.workflow.document.unit import Unit
from weft.workflow.runtime.boundary import BoundaryModels, RecordingBoundary, recorded_models
from weft.workflow.runtime.compiled import CompiledFlow
from weft.workflow.runtime.journals import JOURNALS, PooledJournal
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.options import RunSettings
from weft.workflow.runtime.telemetry import CallListener, CallObserver
from weft.workflow.runtime.tools.toolset import Toolset

_logger = logging.getLogger("weft")
_logger.addFilter(SecretFilter())
_WEFT = version("weft")
_FEW = 16
"""So many runs of one workflow with the same inputs are numbered; the others by the clock."""


@dataclass(frozen=True, slots=True)
class PriorRun:
    """What a run builds on: earlier parts of itself, or another run.

    `claim` is the right to write to `run`, where that has begun; without it a new run begins.
    `records` are the run's own of earlier parts, `letters` were waiting for whoever takes it.
    `notes`: what a new run's record says beside. `own`: a journal that is closed with the run.
    `digests`: of the kind that the record of `recall` has.
    `unsure` as in `Losses`.
    `gone`: nodes that the workflow had and no longer has.
    """

    recall: ResumeState
    redactor: Redactor
    claim: Claim | None = None
    records: tuple[Record, ...] = ()
    confirmed: Mapping[str, Confirmation] = field(default_factory=dict)
    letters: tuple[Letter, ...] = ()
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
        acted = [known for known in memory.everything() if known.has_acted]
        words = [where.partition("@")[0] for where in self.confirmed]
        undecided = [
            UnsettledEffect(known.called.node, known.called.tool)
            for known in acted
            if isinstance(known.called, ToolCalled)
            and known.stands_open
            and not any(matches(word, known.called.node) for word in words)
        ]
        deciders = [
            record.parent if isinstance(record, GraphGrew) else record.node
            for record in self.records
            if (isinstance(record, GraphGrew) and record.results is None)
            or (isinstance(record, NodeRerouted) and record.instead)
        ]
        makers = (known.called.node for known in acted)
        return EffectLedger(makers, undecided, deciders=deciders, guarded=True)


class RunRecording:
    """What is written of a run, and what earlier parts of it came to.

    Opens a journal unless `settings` names one. `redact` gives what may leave the run, of its calls
    here, and of its events where they are emitted. `hear` is told of calls.

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
        hear: CallObserver | None = None,
    ) -> None:
        self._audience = CallListener(hear)
        self._alone = hear is None  # the journal alone is told of calls
        self._redactor = redactor
        self._redact = redact
        self._own = None if past is None else past.own
        self._lent: PooledJournal | None = None
        journal = settings.journal
        if journal is None:
            self._lent = JOURNALS.lend()
            journal = self._lent.journal
        self._past = past
        self._calls: CallLog | None = None
        try:
            if past is not None and past.claim is not None and settings.run is not None:
                self.run, self._claim = RunId(settings.run), past.claim
            else:
                header = self._header(unit, inputs, settings, compiled)
                self.run, self._claim = _begun(journal, header, inputs, settings.run)
        except BaseException:
            self._let_go()
            raise
        durability = settings.durability_of(unit)
        letters = () if past is None else past.letters
        wait_s = settings.journal_wait_s
        self.recorder = RunRecorder(
            journal,
            self.run,
            durability,
            letters=letters,
            patience_s=unit.document.run.journal_wait if wait_s is None else wait_s,
            redactions=redact,
        )

    @property
    def recall(self) -> ResumeState | None:
        """What need not be done again."""
        return None if self._past is None else self._past.recall

    @property
    def recalled_calls(self) -> int:
        """How many calls were not made because their answer is known."""
        return 0 if self._calls is None else self._calls.recalled

    def intercept_calls(
        self,
        tools: Toolset,
        models: ModelSource,
        given: Container[str],
        log: Callable[[NodeId, str], None],
    ) -> BoundaryModels:
        """Have the calls of `tools` recorded, and those of the models that come back."""
        past = self._past or PriorRun(NO_HISTORY, self._redactor)
        book = self._calls = CallLog(
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
        tools.put(RecordingBoundary(book))
        return recorded_models(models, book, given)

    def _write(self, event: CallEvent, durable: bool) -> Awaitable[None] | None:
        if not durable and self._alone and self.recorder.defer(event):
            return None
        for told in self._redact(event):
            self._audience.tell(told)
            self.recorder.add(told)
        return self.recorder.settle() if durable else None

    def close(self) -> None:
        """Let go of the run and of the journal. Harmless when repeated."""
        self._claim.release()
        self._let_go()

    def _let_go(self) -> None:
        if self._own is not None:
            self._own.close()
        lent, self._lent = self._lent, None
        if lent is not None:
            JOURNALS.give_back(lent)

    def _header(
        self, unit: Unit, inputs: Mapping[str, Any], settings: RunSettings, compiled: CompiledFlow
    ) -> RunHeader:
        said = {**settings.recorded(), **(self._past.notes if self._past is not None else {})}
        if stands_in_file(unit):
            said["folder"] = str(unit.root)
        return RunHeader(
            RunId(""),
            unit.document.name,
            (settings.clock or SystemClock()).wall().isoformat(timespec="milliseconds"),
            _WEFT,
            self._redactor.redact(dict(inputs)),
            compiled.redacted_sources(self._redactor),
            self._redactor.redact(said),
            self._redactor.names,
        )


def _begun(
    journal: Journal, header: RunHeader, inputs: Mapping[str, Any], named: str | None
) -> tuple[RunId, Claim]:
    """A run that begins: as it is `named`, else with the first id that is free."""
    if named is not None:
        return RunId(named), journal.begin(replace(header, run=RunId(named)))
    ids = run_ids(header.flow, inputs, (*range(_FEW), time.time_ns()))
    first = next(ids)
    if not journal.taken([first]):  # mostly: one question is enough
        with suppress(RunExists):
            return first, journal.begin(replace(header, run=first))
    *numbered, last = ids
    there = journal.taken(numbered)
    for run in (*(run for run in numbered if run not in there), last):
        try:
            return run, journal.begin(replace(header, run=run))
        except RunExists:
            continue
    raise RunExists(f"the journal has the run {run!r}", hint="begin it once more")
