"""The run-queue port: runs that wait for a worker, their terms and their schedules.

A queue is part of a journal: submission writes the run's header, and the journal's own records move
a run to `running` and `ended`. Methods block briefly, from any thread. `now_s` (seconds since 1970)
replaces the store's own clock. Import it from this module, as `weft.core.ports.journal`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from weft.core.errors import StoreError
from weft.core.events import RunStatus
from weft.core.ids import RunId
from weft.core.ports.journal import Claim, Journal, Losses, RunHeader

QueueState = Literal["queued", "running", "asking", "ended", "stopped"]
"""Of a queued run.

queued    waits for its time, for a worker with its version, or for its concurrency limit
running   a worker has claimed it; where that died, another one claims it
asking    waits for an answer, and occupies no worker
ended     its record has an end
stopped   no worker takes it before a `requeue`: `QueueEntry.reason` says why
"""
CatchUp = Literal["skip", "one", "all"]
"""What a schedule does about firing times that no worker was there for: none, the last, or all."""
MAX_ATTEMPTS: Final = 10
"""Workers that may die with a run before it is stopped."""


@dataclass(frozen=True, slots=True)
class QueueTerms:
    """How a run is queued.

    version            digest of the workflow and its code; only workers with the same one take it
    queue              the name of its queue
    priority           higher first; then in the order of submission
    due_s              not before (seconds since 1970)
    concurrency_key    with `concurrency_limit`: at most so many runs of this key run at once
    max_attempts       so many workers may die with it before it is stopped
    """

    version: str
    queue: str = "default"
    priority: int = 0
    due_s: float = 0.0
    concurrency_key: str = ""
    concurrency_limit: int | None = None
    max_attempts: int = MAX_ATTEMPTS


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A run in the queue. `attempts`: workers that have had it, without those that gave it back.

    `holder`: the process that has claimed it, or empty. `status`: how its record ends, if it does.
    """

    run: RunId
    flow: str
    terms: QueueTerms
    state: QueueState
    attempts: int
    wall: str
    holder: str = ""
    status: RunStatus | None = None
    reason: str = ""


class TakenRun(NamedTuple):
    """A run that this process has taken from the queue.

    Releasing `claim` moves it on, unless it has ended: to `asking` where a node asks and no new
    signal waits, else back to `queued`. `losses` as of `Journal.losses`, before the claim.
    """

    run: RunId
    version: str
    claim: Claim
    attempts: int
    losses: Losses


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """Submits a run at each time of a cron expression.

    `zone`: an IANA time zone; `next_s`: its next firing time (seconds since 1970); `header`: the
    run's, whose id is replaced at each firing.
    """

    name: str
    cron: str
    zone: str
    catch_up: CatchUp
    next_s: float
    header: RunHeader
    terms: QueueTerms = field(default_factory=lambda: QueueTerms(""))


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker, as of its last heartbeat.

    `id` is unique; `host` and `pid` say where it runs; `versions`: the workflows that it can
    execute, each with its version; `concurrency`: runs at once. `since_s`: when it began, by its
    own clock, and `beat_s`: its last heartbeat, by the store's (seconds since 1970).
    """

    id: str
    host: str
    pid: int
    versions: tuple[tuple[str, str], ...]
    queues: tuple[str, ...]
    concurrency: int
    since_s: float
    draining: bool = False
    beat_s: float = 0.0

    @property
    def holder(self) -> str:
        """Its process, as `QueueEntry.holder` names it."""
        return holder_name(self.pid, self.host)


def holder_name(pid: int, host: str) -> str:
    """The name of a process that has claimed runs."""
    return f"process {pid} on {host}"[:63]  # a server's limit


class QueueListener(Protocol):
    """Calls a function when a run may have become ready or has ended.

    `poll_s`: seconds after which to look without a call; None where every change is notified.
    """

    @property
    def poll_s(self) -> float | None: ...

    def close(self) -> None:
        """Call no more. Harmless when repeated."""


class RunQueue(Protocol):
    """The queue of a journal. Every method may raise `StoreError`."""

    def submit(self, header: RunHeader, terms: QueueTerms) -> bool:
        """Store an unclaimed run, queued; False when the journal has a run of this id."""

    def begin(self, header: RunHeader, terms: QueueTerms) -> Claim:
        """As `Journal.begin`, for a run that a worker continues if this process dies."""

    def take(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> TakenRun | None:
        """Claim the next run of one of `versions` that may run now; None: there is none.

        Runs whose process died are among them.
        """

    def wait_s(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> float | None:
        """Seconds until a run or a schedule may become due, without a notification; None: never."""

    def requeue(self, run: RunId) -> None:
        """Let a run that asks, was stopped or has ended unsuccessfully be taken again, now.

        Raises: `UnknownReference` for a run that was not queued.
        """

    def stop(self, run: RunId, reason: str) -> None:
        """Let no worker take a run, which this process has taken."""

    def entry(self, run: RunId) -> QueueEntry | None:
        """A queued run; None for one that was not queued. Raises: `UnknownReference`."""

    def entries(
        self, states: Sequence[QueueState] = (), limit: int | None = None
    ) -> Sequence[QueueEntry]:
        """The runs of these states (default: all), in the order in which they would be taken."""

    def listen(self, wake: Callable[[], object]) -> QueueListener:
        """Call `wake`, from any thread, at each change."""

    def put_schedule(self, schedule: RunSchedule) -> None:
        """Add a schedule, or replace the one of its name."""

    def remove_schedule(self, name: str) -> bool:
        """Remove a schedule; False when there is none of this name."""

    def schedules(self) -> Sequence[RunSchedule]:
        """The schedules, by name."""

    def fire(self, schedule: RunSchedule, next_s: float, run: RunId | None, due_s: float) -> bool:
        """Advance `schedule` from its `next_s` to this one, and submit `run` unless it is None.

        False where another process has done it, or the schedule was changed.
        """

    def put_worker(self, worker: WorkerEntry, lease_s: float) -> None:
        """Register a worker, or renew it: it counts as alive for `lease_s` seconds from now."""

    def remove_worker(self, worker: str) -> None:
        """Forget a worker, by its id. Harmless when repeated."""

    def workers(self) -> Sequence[WorkerEntry]:
        """The workers that are alive, in the order of their ids."""


@runtime_checkable
class QueueingJournal(Protocol):
    """A journal with a queue."""

    @property
    def queue(self) -> RunQueue: ...


def queue_of(journal: Journal) -> RunQueue:
    """The queue of a journal. Raises: `StoreError` for a journal without one."""
    if isinstance(journal, QueueingJournal):
        return journal.queue
    hint = "use one in a file or on a PostgreSQL server"
    raise StoreError(f"{type(journal).__name__} has no queue of runs", hint=hint)
