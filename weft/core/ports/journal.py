"""The journal port: stores the records of every run as they happen, until they are pruned.

Its methods block briefly; they may be called from any thread. Several processes may use one
journal. Import it from this module: it depends on events, which depend on the other ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, Protocol

from weft.core.calls import CallEvent
from weft.core.errors import UnknownReference
from weft.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    RunFinished,
    RunResumed,
    RunStatus,
)
from weft.core.ids import NodeId, RunId

Record = Event | CallEvent
Standing = Literal["running", "asking", "interrupted"] | RunStatus
"""`running` and `asking`: a process has claimed it; `interrupted`: unfinished and unclaimed."""


class NumberedRecord(NamedTuple):
    """A record and its position. `part`: the process of the run that wrote it, counted from 1."""

    seq: int
    part: int
    record: Record


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The definition of a run, written before its first event.

    `document` is the workflow's source, by the path of each file (the first is the workflow
    itself); `inputs` and `settings` are JSON; `wall` is the UTC start in ISO 8601; `weft` the
    version that began it. `secrets`: the names of redacted secrets.
    """

    run: RunId
    flow: str
    wall: str
    weft: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line. `ended_wall` is empty before its end; `asking` names waiting nodes."""

    run: RunId
    flow: str
    standing: Standing
    wall: str
    ended_wall: str = ""
    parts: int = 1
    records: int = 0
    asking: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Letter:
    """A signal from another process to the one that runs the run.

    answer   `value` answers the question of `node`
    cancel   end `node`, or the run (None); `value` is the reason
    confirm  `value` settles a call of `node` whose end is unknown:
             {"call": seq of its record, "said": "done" or "repeat", "value": what it returned}
    """

    kind: Literal["answer", "cancel", "confirm"]
    node: NodeId | None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses at the end of a run's record, as far as sources next to the record show.

    `notes` describe it in sentences; empty: nothing is missing. `calls`: records of `once` calls
    that only those other sources have; `Journal.claim` adds them to the record. `unsure`: there may
    have been more `once` calls, which no source has.
    """

    notes: tuple[str, ...] = ()
    calls: tuple[Record, ...] = ()
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that the journal has lost, as a source next to it (`where`) shows.

    It had `seq` records, among them `calls`, those of its `once` calls.
    """

    run: RunId
    seq: int
    calls: tuple[Record, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """The readable part of a run whose record is damaged; `problems` say what is lost, and why."""

    header: RunHeader
    records: tuple[NumberedRecord, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of a pruning: removed runs, and freed and remaining bytes."""

    runs: tuple[RunId, ...]
    freed_bytes: int
    left_bytes: int


class Claim(Protocol):
    """The right to write to a run. It has one holder at a time and ends with its process.

    It survives lost connections to the journal's database.
    """

    def release(self) -> None:
        """Release the claim. Harmless when repeated."""


class Journal(Protocol):
    """Stores runs as numbered records. Every method may raise `StoreError`."""

    @property
    def quick(self) -> bool:
        """Whether `append` and `letters`, without waits, are fast enough for an event loop."""

    def begin(self, header: RunHeader) -> Claim:
        """Open a new run. Raises: `RunExists` when there is one of this id, `RunLost`."""

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        """The ids among `runs` that the journal has, in one query."""

    def claim(self, run: RunId) -> Claim:
        """Claim an existing run, to continue it. Raises: `RunBusy`, `UnknownReference`."""

    def withdraw(self, run: RunId) -> bool:
        """Remove a run that this object has claimed and that has no records; its id is free then.

        False for a run that has some: it stays, claimed. Raises: `StoreError` for an unclaimed one.
        """

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        """Add `records` in order, atomically and durably against the death of the process.

        The run must have been begun or claimed with this object. A `RunResumed` begins the part
        that it names. After a retryable error the call may be repeated with these records first:
        none is added twice. The intent of a `once` call is synced to disk when this returns.
        Raises: `StoreError`, not retryable, when another process has claimed the run meanwhile.
        Without `wait` a quick journal raises a retryable `StoreError` at once where another writer
        is active, or where it would wait for the disk.
        """

    def header(self, run: RunId) -> RunHeader:
        """The run's header. Raises: `UnknownReference`, with the closest ids."""

    def summary(self, run: RunId) -> RunSummary:
        """The run in one line. Raises: `UnknownReference`."""

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        """The runs, the latest first."""

    def records(
        self, run: RunId, after: int = 0, limit: int | None = None
    ) -> Iterable[NumberedRecord]:
        """The records of a run with a larger `seq` than `after`, in order.

        Raises: `UnknownReference`.
        """

    def losses(self, run: RunId) -> Losses:
        """The losses at the end of an unclaimed run. Raises: `UnknownReference`."""

    def lost_runs(self) -> Sequence[LostRun]:
        """Runs that the journal has lost, as a source next to it shows."""

    def salvage(self, run: RunId) -> Salvage:
        """The readable part of a run, however damaged. Raises: `UnknownReference`."""

    def version(self) -> int:
        """A number that changes with every write.

        While another thread uses the journal the number may be outdated. Never waits.
        """

    def send(self, run: RunId, letter: Letter) -> None:
        """Leave a signal for the process that has claimed the run, or will claim it."""

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        """Take the signals of a run, in the order sent; each is delivered once.

        `wait` as in `append`. After the next claim, signals are delivered again unless a record
        settles them: their node was answered or ended, or the run ended.
        """

    def pending_letters(self, run: RunId) -> Sequence[Letter]:
        """The signals of a run that no record settles yet, in the order sent. Takes none."""

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> PruneResult:
        """Remove unclaimed runs: the oldest beyond the given bounds, or the named `runs`.

        Raises: `UnknownReference`, and `RunBusy` when a named run is claimed; then none is removed.
        """

    def check(self) -> Sequence[str]:
        """Read everything and describe damage in sentences; empty: all is well."""

    def close(self) -> None:
        """Close files and connections. Harmless when repeated."""


class RunProgress:
    """A run's current part, its final status if it has ended, and the nodes that ask a person."""

    def __init__(
        self, part: int = 1, status: RunStatus | None = None, asking: Iterable[NodeId] = ()
    ) -> None:
        self.part = part
        self.status = status
        self.asking = dict.fromkeys(asking)

    def see(self, record: Record) -> bool:
        """Apply a record; true when it changed anything."""
        match record:
            case NodeFinished(node=node) | HumanAnswered(node=node):
                return self.asking.pop(node, self) is None
            case HumanAsked(node=node):
                self.asking[node] = None
            case RunResumed(part=part):
                self.part, self.status = part, None
            case RunFinished(status=status):
                self.status = status
                self.asking.clear()
            case _:
                return False
        return True

    def after(self, records: Iterable[Record]) -> RunProgress:
        """The progress after these records too."""
        progress = RunProgress(self.part, self.status, self.asking)
        for record in records:
            progress.see(record)
        return progress

    def standing(self, held: bool) -> Standing:
        """The run's standing. `held`: a process has claimed it."""
        if self.status is not None:
            return self.status
        if not held:
            return "interrupted"
        return "asking" if self.asking else "running"


def settles(record: Record, letter: Letter) -> bool:
    """Whether `record` settles the signal `letter`.

    A confirmation settles only when the run succeeds: until then a resumed run needs it.
    """
    if letter.kind == "confirm":
        return isinstance(record, RunFinished) and record.status == "succeeded"
    match record:
        case NodeFinished(node=node) | HumanAnswered(node=node):
            return letter.node == node
    return isinstance(record, RunFinished)


def unknown_run(run: RunId, known: Iterable[str]) -> UnknownReference:
    """The error for a run that a journal does not have."""
    close = get_close_matches(run, list(known), n=3, cutoff=0.5)
    hint = f"the closest: {', '.join(close)}" if close else "`weft runs` lists them"
    return UnknownReference(f"the journal has no run {run!r}", hint=hint)


def outdated(
    runs: Sequence[RunSummary], now: datetime, keep: int | None, older_than_s: float | None
) -> list[RunId]:
    """The runs beyond the first `keep`, and those that are too old; `runs` has the latest first.

    A run's age counts from its end, or from its start without one.
    """
    return [
        summary.run
        for place, summary in enumerate(runs)
        if (keep is not None and place >= keep)
        or (older_than_s is not None and _age_s(summary, now) > older_than_s)
    ]


def _age_s(summary: RunSummary, now: datetime) -> float:
    try:
        since = datetime.fromisoformat(summary.ended_wall or summary.wall)
        return (now - since).total_seconds()
    except (ValueError, TypeError):  # no time, or one without a zone
        return 0.0
