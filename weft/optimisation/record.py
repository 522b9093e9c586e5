"""The record of a study: one run in a journal, from which it goes on after any death.

    study                           the study; its value is the result
    search[2]                       a step: search, race, canaries, held-out, proposals
    search[2]/run[7]                a candidate on a case; its value is the outcome
    search[2]/run[7]/answer         a node that ran for it; its value is the entry of the table
    more[0]                         the study may take more from here on; its value says what

What is here is not done again. It does not know what the values mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weft.core.errors import InputError
from weft.core.events import (
    Event,
    GraphGrew,
    NodeFinished,
    NodeInfo,
    NodeSpent,
    NodeStarted,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStatus,
)
from weft.core.ids import NodeId, RunId, inside, item
from weft.core.ports import Clock, StoreEntry
from weft.core.ports.journal import Claim, Journal, RunHeader
from weft.core.redaction import Redactor
from weft.core.values import Usage
from weft.durability.calls import RecordRedactor
from weft.engine.runner.result_cache import LOOKUP_NODE
from weft.optimisation.notes import HELD_OUT, NOTES, SUFFIX, is_study
from weft.workflow.compile.sources import SourceDigests, source_texts
from weft.workflow.document.secrets import redactor_of
from weft.workflow.document.unit import Unit
from weft.workflow.history.run_history import LAST, RunHistory, find_run, read_history
from weft.workflow.runtime.options import RunSettings
from weft.workflow.runtime.recording import begin_run, run_header

STUDY: Final = NodeId("study")
NO_RUN: Final = RunId("")
_RESULT: Final = "result:"
_DONE: Final = "done:"
_MORE: Final = "more:"
_GATE: Final = item(NodeId(HELD_OUT), 0)


@dataclass(slots=True)
class RecordedResult:
    """An entry of the table of outcomes, and the digest of the run of a candidate that paid it."""

    entry: Any
    owner: str


@dataclass(slots=True)
class StudyRecord:
    """Writes what a study does, and has what it did in earlier processes.

    `done`: the values of finished runs of candidates and of a proposer's questions, by digest.
    `results`: entries of the table, by key. Without a journal they are only in memory.
    `extensions`: what the study was given besides its budget; `earlier`: the digests that were done
    when it was given the last of them; `looks`: its looks at the held-out cases until then.
    """

    clock: Clock
    run: RunId = NO_RUN
    journal: Journal | None = None
    claim: Claim | None = None
    redactor: Redactor = field(default_factory=Redactor)
    done: dict[str, Any] = field(default_factory=dict)
    results: dict[str, RecordedResult] = field(default_factory=dict)
    result: Any = None
    usage: Usage = field(default_factory=Usage)
    before_s: float = 0.0
    extensions: list[Mapping[str, Any]] = field(default_factory=list)
    earlier: frozenset[str] = frozenset()
    looks: int = 0
    _known: set[NodeId] = field(default_factory=set)
    _steps: dict[str, int] = field(default_factory=dict)
    _redact: RecordRedactor | None = None
    _since: float = 0.0
    _has_looked: bool = False

    def __post_init__(self) -> None:
        self._since = self.clock.now()
        self._redact = RecordRedactor(self.redactor)

    @property
    def elapsed_s(self) -> float:
        """Seconds of work on the study, in all its processes."""
        return self.before_s + self.clock.now() - self._since

    @classmethod
    def begin(
        cls,
        journal: Journal,
        unit: Unit,
        cases: Sequence[Mapping[str, Any]],
        notes: Mapping[str, Any],
        clock: Clock,
        run: str | None = None,
    ) -> StudyRecord:
        """Begin a new run. Raises: `StoreError`, `RunExists`."""
        redactor = redactor_of(unit)
        inputs = {"cases": list(cases)}
        sources = redactor.redact(dict(source_texts(unit, SourceDigests())))
        settings = RunSettings(clock=clock)
        header = run_header(unit, inputs, settings, sources, redactor, notes)
        header = replace(header, flow=f"{unit.document.name}{SUFFIX}")
        given = {**inputs, NOTES: notes[NOTES]}
        found, claim = begin_run(journal, journal.begin, header, given, run)
        made = cls(clock, found, journal, claim, redactor)
        made._write(made._beginning(header.flow, header.wall))
        return made

    @classmethod
    def reopen(cls, journal: Journal, run: RunId, unit: Unit, clock: Clock) -> StudyRecord:
        """Go on with a run. Raises: `RunBusy`, `UnknownReference`, `StoreError`."""
        claim = journal.claim(run)
        try:
            history = read_history(journal, run)
            redactor = redactor_of(unit, history.header.secrets)
            made = cls(clock, run, journal, claim, redactor)
            made._read(history)
            part, wall = journal.summary(run).parts + 1, clock.wall().isoformat()
            resumed = RunResumed(run, part, wall, made.elapsed_s)
            made._write([resumed, *made._beginning(history.header.flow, wall)])
        except BaseException:
            claim.release()
            raise
        return made

    @classmethod
    def read(cls, history: RunHistory, unit: Unit, clock: Clock) -> StudyRecord:
        """What a run has recorded, to be read only."""
        made = cls(clock, redactor=redactor_of(unit, history.header.secrets))
        made._read(history)
        return made

    def extend(self, limits: Mapping[str, Any]) -> None:
        """Let the study take more, in this process and in those that resume it."""
        node = item(NodeId("more"), len(self.extensions))
        digest = f"{_MORE}{len(self.extensions)}"
        self._start(STUDY, node, "step")
        outcome = Outcome("succeeded", dict(limits))
        self._write([NodeFinished(node, outcome, self.elapsed_s, digest=digest)])
        self._take(node, digest, limits, {})

    def looks_before(self, held_out: str) -> int:
        """Earlier looks at held-out cases of this digest, by this study and others.

        Of a record without its journal: as its result counts them.
        """
        if self.journal is None:
            return max(0, self.result["verdict"]["looks"] - 1) if self.result else 0
        return self.looks + looks_before(self.journal, held_out, self.run)

    def step(self, purpose: str) -> NodeId:
        """Begin the next step of a purpose; the same steps follow in a resumed study."""
        number = self._steps.get(purpose, 0)
        self._steps[purpose] = number + 1
        node = item(NodeId(purpose), number)
        self._start(STUDY, node, "step")
        return node

    def end_step(self, step: NodeId) -> None:
        """All that was to be done in a step is done."""
        self._write([NodeFinished(step, Outcome("succeeded"), self.elapsed_s)])

    def start(self, step: NodeId, name: str, digest: str, kind: str = "candidate") -> NodeId:
        """A run of a candidate, or a question, begins in a step."""
        node = inside(step, name)
        self._start(step, node, kind, f"{_DONE}{digest}")
        return node

    def finish(self, node: NodeId, digest: str, value: Any, usage: Usage | None = None) -> None:
        """It has ended, with a value of JSON types; `usage`: what no result of its nodes has."""
        self.done[digest] = value
        spent = [] if usage is None else [NodeSpent(node, usage, self.elapsed_s)]
        outcome = Outcome("succeeded", value)
        self._write([*spent, NodeFinished(node, outcome, self.elapsed_s, digest=_DONE + digest)])

    def store(self, node: NodeId, digest: str, prompt_of: Callable[[NodeId], str]) -> StudyStore:
        """The table of outcomes for a run of a candidate; `prompt_of` its nodes is kept beside."""
        return StudyStore(self, node, digest, prompt_of)

    def put(self, owner: NodeId, digest: str, place: str, key: str, entry: Any) -> None:
        """Keep an entry of the table; its cost is what `owner` paid for it."""
        self.results[key] = RecordedResult(entry, digest)
        node, at_s = inside(owner, place or "node"), self.elapsed_s
        usage = Usage(**entry["cost"]["usage"])
        self._start(owner, node, "result")
        spent = [NodeSpent(node, usage, at_s)] if usage != Usage() else []
        self._write(
            [*spent, NodeFinished(node, Outcome("succeeded", entry), at_s, digest=_RESULT + key)]
        )

    def end(self, status: RunStatus, value: Any, usage: Usage, why: Iterable[str] = ()) -> None:
        """The study has ended, with `value` as its result."""
        outcome = Outcome("succeeded", value)
        ended = RunFinished(status, usage, tuple(why), self.elapsed_s)
        self._write([NodeFinished(STUDY, outcome, self.elapsed_s), ended])

    def close(self) -> None:
        """Release the run. Harmless when repeated."""
        claim, self.claim = self.claim, None
        if claim is not None:
            claim.release()

    def _beginning(self, flow: str, wall: str) -> list[Event]:
        self._known.add(STUDY)
        info = NodeInfo(STUDY, "study")
        started = RunStarted(self.run, flow, wall, (info,), {}, self.elapsed_s)
        return [started, NodeStarted(STUDY, 1, self.elapsed_s)]

    def _start(self, parent: NodeId, node: NodeId, kind: str, digest: str = "") -> None:
        at_s = self.elapsed_s
        events: list[Event] = [NodeStarted(node, 1, at_s, digest)]
        if node not in self._known:
            self._known.add(node)
            events.insert(0, GraphGrew(parent, (NodeInfo(node, kind, parent=parent),), at_s))
        self._write(events)

    def _write(self, events: Sequence[Event]) -> None:
        if self.journal is None or self._redact is None:
            return
        records = [record for event in events for record in self._redact(event)]
        self.journal.append(self.run, records)

    def _read(self, history: RunHistory) -> None:
        owners: dict[NodeId, str] = {}
        for event in history.events:
            self.before_s = max(self.before_s, event.at_s)
            match event:
                case GraphGrew(nodes=nodes):
                    self._known.update(info.id for info in nodes)
                case NodeStarted(node=node, digest=digest) if digest.startswith(_DONE):
                    owners[node] = digest.removeprefix(_DONE)
                case NodeStarted(node=node) if node == _GATE:
                    self._has_looked = True
                case NodeFinished(node=node, digest=digest, outcome=outcome):
                    self._take(node, digest, self.redactor.restore(outcome.value), owners)
                case NodeSpent(usage=usage):
                    self.usage += usage
                case _:
                    pass

    def _take(self, node: NodeId, digest: str, value: Any, owners: Mapping[NodeId, str]) -> None:
        if node == STUDY:
            self.result = value
        elif digest.startswith(_MORE):
            self.extensions.append(value)
            self.earlier = frozenset(self.done)
            self.looks += self._has_looked
            self._has_looked = False
        elif digest.startswith(_DONE):
            self.done[digest.removeprefix(_DONE)] = value
        elif digest.startswith(_RESULT):
            owner = next((owners[place] for place in _around(node) if place in owners), "")
            self.results[digest.removeprefix(_RESULT)] = RecordedResult(value, owner)


def _around(node: NodeId) -> Iterable[NodeId]:
    parts = node.split("/")
    return (NodeId("/".join(parts[:count])) for count in range(len(parts) - 1, 0, -1))


class StudyStore:
    """Implements `ResultStore`: the table of a study, as one run of a candidate writes to it."""

    def __init__(
        self, record: StudyRecord, node: NodeId, digest: str, prompt_of: Callable[[NodeId], str]
    ) -> None:
        self._record = record
        self._prompt_of = prompt_of
        self._node = node
        self._digest = digest

    async def get(self, key: str) -> StoreEntry | None:
        found = self._record.results.get(key)
        return None if found is None else StoreEntry(found.entry)

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        del ttl_s  # a study's results do not expire
        node = LOOKUP_NODE.get()
        prompt = self._prompt_of(node)
        entry = {**value, "prompt": prompt} if prompt else value
        self._record.put(self._node, self._digest, node.partition("/")[2], key, entry)

    async def aclose(self) -> None:
        """The record outlives the run."""


def looks_before(journal: Journal | None, digest: str, run: str) -> int:
    """How many other studies in the journal have looked at held-out cases of this digest."""
    if journal is None:
        return 0
    studies = (each.run for each in journal.runs() if each.flow.endswith(SUFFIX))
    return sum(_has_looked(journal, each, digest) for each in studies if each != run)


def _has_looked(journal: Journal, run: RunId, digest: str) -> bool:
    header: RunHeader = journal.header(run)
    if not is_study(header.settings) or header.settings[NOTES].get("held_out") != digest:
        return False
    return any(
        isinstance(each.record, NodeStarted) and each.record.node == _GATE
        for each in journal.records(run)
    )


def check_study(history: RunHistory) -> Mapping[str, Any]:
    """What a record says of its study. Raises: `InputError` where the run is none."""
    settings = history.header.settings
    if not is_study(settings):
        hint = "`weft runs` lists the runs"
        raise InputError(f"{history.run} is no study", hint=hint)
    notes: Mapping[str, Any] = settings[NOTES]
    return notes


def find_study(journal: Journal, text: str) -> RunId:
    """The run of this id or beginning; `last` is the last study, whatever ran after it.

    Raises: `UnknownReference`, `RunLost`.
    """
    if text == LAST:
        studies = (each.run for each in journal.runs() if each.flow.endswith(SUFFIX))
        if (found := next(studies, None)) is not None:
            return found
    return find_run(journal, text)
