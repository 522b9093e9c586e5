"""The journal port: what happened in every run, kept while it happens, for as long as wanted.

Its methods block, briefly; they may be called from any thread. Several processes may use one
journal. Import it from here: it speaks of events, which speak of the other ports.
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
"""`running` and `asking`: a process has it; `interrupted`: it has not ended and nobody has it."""


class NumberedRecord(NamedTuple):
    """A record and its place. `part`: which process of the run wrote it, from 1."""

    seq: int
    part: int
    record: Record


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a run was, before anything happened.

    `document` is the workflow's source, by the path of each file (the first is the workflow
    itself); `inputs` and `settings` are JSON; `wall` is the UTC start in ISO 8601; `weft` the
    version that began it. `secrets`: names of what was redacted.
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
    """A run in one line. `ended_wall` is empty while it has not ended; `asking` names nodes."""

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
    """A word from another process to the one that has the run.

    answer   `value` for the question of `node`
    cancel   end `node`, or the run (None); `value` is the reason
    confirm  `value` says of a call of `node` that nobody knows the end of what became of it:
             {"call": seq of its record, "said": "done" or "repeat", "value": what it returned}
    """

    kind: Literal["answer", "cancel", "confirm"]
    node: NodeId | None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Losses:
    """What is missing at the end of a run's record, as far as something beside the record tells.

    `notes` say it in sentences; none: nothing is missing. `calls`: the records of `once` calls
    that are known from beside the record only; `Journal.claim` adds them to it. `unsure`: there
    may have been more: a `once` call that no record knows may have been made.
    """

    notes: tuple[str, ...] = ()
    calls: tuple[Record, ...] = ()
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that the journal does not have, and that something beside it tells of.

    It had `seq` records, among them `calls`, those of its `once` calls. `where`: what tells so.
    """

    run: RunId
    seq: int
    calls: tuple[Record, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Salvage:
    """What can be read of a run whose record is damaged, and `problems`: what cannot, and why."""

    header: RunHeader
    records: tuple[NumberedRecord, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was removed, and what is left."""

    runs: tuple[RunId, ...]
    freed_bytes: int
    left_bytes: int


class Claim(Protocol):
    """The right to write to a run. One holder at a time; the death of its process ends it.

    It outlives lost connections to where the journal is.
    """

    def release(self) -> None:
        """Give it back. Harmless when repeated."""


class Journal(Protocol):
    """Keeps runs as numbered records. Every method raises `StoreError` when it cannot."""

    @property
    def quick(self) -> bool:
        """Whether `append` and `letters` take so little time, when they do not wait for others,
        that an event loop may well do them itself.
        """

    def begin(self, header: RunHeader) -> Claim:
        """Open a new run. Raises: `RunExists` when there is one of this id, `RunLost`."""

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        """Those of some ids that there are runs of, asked for all at once."""

    def claim(self, run: RunId) -> Claim:
        """Take a run that is there, to go on with it. Raises: `RunBusy`, `UnknownReference`."""

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        """Add `records` in order: all or none, and not lost by the death of the process.

        The run must have been begun or claimed with this object. A `RunResumed` begins the part
        that it names. What failed with a retryable error may be tried again, these records first:
        none of them is added twice. The intent of a `once` call is on the disk, synced, when this
        returns. Raises: `StoreError`, not retryable, when another process has claimed the run
        meanwhile. Without `wait` a quick journal raises a retryable `StoreError` at once where
        somebody else is writing, or where it has to wait for the disk.
        """

    def header(self, run: RunId) -> RunHeader:
        """What the run was. Raises: `UnknownReference`, with the closest ids."""

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
        """What is missing at the end of a run that nobody has. Raises: `UnknownReference`."""

    def lost_runs(self) -> Sequence[LostRun]:
        """Runs that the journal had, as something beside it tells, and does not have any more."""

    def salvage(self, run: RunId) -> Salvage:
        """What is sound of a run, however damaged. Raises: `UnknownReference`."""

    def version(self) -> int:
        """A number that differs when anything was written since it was last asked for.

        While another thread uses the journal it may be the old one. It never waits.
        """

    def send(self, run: RunId, letter: Letter) -> None:
        """Leave a letter for whoever has the run, or will have it."""

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        """Take the letters of a run, in the order they were sent; each is given out once.

        `wait` as in `append`.

        Whoever claims the run later gets those again of which no record says that they were heeded:
        that their node was answered or ended, or that the run did.
        """

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> PruneResult:
        """Remove runs that nobody has: the oldest beyond what is allowed, or those named.

        Raises: `UnknownReference`, and `RunBusy` when somebody has a named one; then none is gone.
        """

    def check(self) -> Sequence[str]:
        """Read everything; what is damaged or missing, in sentences. Empty: all is well."""

    def close(self) -> None:
        """Let go of files and connections. Harmless when repeated."""


class RunProgress:
    """The part that writes now, how the run ended if it did, and which nodes ask a person."""

    def __init__(
        self, part: int = 1, status: RunStatus | None = None, asking: Iterable[NodeId] = ()
    ) -> None:
        self.part = part
        self.status = status
        self.asking = dict.fromkeys(asking)

    def see(self, record: Record) -> bool:
        """Take a record in; true when that changed anything."""
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
        """How the run stands once these have happened too."""
        then = RunProgress(self.part, self.status, self.asking)
        for record in records:
            then.see(record)
        return then

    def standing(self, held: bool) -> Standing:
        """`held`: a process has the run."""
        if self.status is not None:
            return self.status
        if not held:
            return "interrupted"
        return "asking" if self.asking else "running"


def settles(record: Record, letter: Letter) -> bool:
    """Whether what a letter was sent for has happened.

    A word on a call is for whoever resumes the run, however this part of it ends.
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
    """Of `runs`, the latest first, those beyond the first `keep` and those that are too old.

    A run is as old as its end, or as its start when it has none.
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
