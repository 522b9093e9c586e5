"""Writing the batches of a claimed run, and checkpointing SQLite's log."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NoReturn

from weft.core.calls import ToolCalled
from weft.core.codec import WrittenLists, encode_all
from weft.core.errors import StoreError
from weft.core.events import HumanAnswered, HumanAsked, NodeFinished, RunFinished, RunResumed
from weft.core.ports.journal import Record, RunProgress
from weft.durability.journal.rows import A_WORD, START, Blobs, link, packed, sealed
from weft.durability.journal.sqlite.faults import is_full
from weft.durability.journal.sqlite.locks import FileLock
from weft.durability.journal.sqlite.once_log import OnceLog
from weft.durability.journal.sqlite.tables import SEQ_BITS
from weft.durability.queue.moves import move

_INSERT = "INSERT INTO batches VALUES (?, ?, ?, ?)"
_PAGE_BYTES = 4096
_SYNCED_IN_LOG = 32
"""Batches with intents after which the log is checkpointed: a lost log loses its batches."""
_ALWAYS_STATE_EVENTS = frozenset({HumanAsked, HumanAnswered, RunFinished, RunResumed})
_STATE_EVENTS = _ALWAYS_STATE_EVENTS | {NodeFinished}  # where questions or signals are open


@dataclass(frozen=True, slots=True)
class PendingCalls:
    """The last batch, of `records` records, whose `calls` are not in the file of calls yet."""

    records: int
    calls: Sequence[Record]


@dataclass(slots=True)
class ClaimedRun:
    """A run that this process has claimed.

    `seq`: the number of its last record; `chain`: its chain there; `once`: the file of its calls;
    `unnoted`: what could not be written to that file, and is not appended again on a retry.
    """

    no: int
    seq: int
    progress: RunProgress
    lock: FileLock
    once: OnceLog
    chain: bytes = START
    letters: bool = False
    """Whether there may be signals to it that were delivered and not settled."""
    unnoted: PendingCalls | None = None
    synced: int = 0
    """The number of batches with intents that this process has written."""
    lists: WrittenLists = field(default_factory=WrittenLists)
    """Lists in the batches of this process, whose parts stay as long as the run does."""


class PreparedBatch:
    """A batch that is about to be written after the last of a run."""

    def __init__(
        self,
        no: int,
        seq: int,
        chain: bytes,
        part: int,
        records: Sequence[Record],
        lists: WrittenLists | None = None,
    ) -> None:
        blobs = Blobs()
        body = sealed(encode_all(records, blobs.keep, lists))
        self.records = records
        self.seq = seq = seq + len(records)
        self.chain = link(chain, seq, part, body)
        self.row = ((no << SEQ_BITS) + seq, part, body, self.chain)
        self.bodies: Mapping[bytes, bytes] = blobs.bodies
        """The values that its records store separately, by digest."""
        self.pages = 1 + len(body) // _PAGE_BYTES
        """The number of database pages it changes, roughly: each value has one in an index."""
        if blobs.bodies:
            self.pages += sum(2 + len(body) // _PAGE_BYTES for body in blobs.bodies.values())


def append(
    db: sqlite3.Connection,
    run: ClaimedRun,
    records: Sequence[Record],
    wall: Callable[[], datetime],
    intent: bool,
) -> int:
    """Write a batch, all of it or nothing; return its pages. `wall`: the clock for an end's time.

    Calls that could not be noted in the file of calls are noted first; their batch is not written
    again. `intent`: see `has_intent`.
    """
    if run.unnoted is not None:
        records = records[run.unnoted.records :]
        _note(run, run.unnoted.calls)
        run.unnoted = None
        if not records:
            return 0
    try:
        part, lists = run.progress.part, run.lists
        batch = PreparedBatch(run.no, run.seq, run.chain, part, records, lists)
        calls = run.once.calls(records) if intent or run.once.waits else ()
        if calls:
            _insert_with_calls(db, run, batch, calls, wall)
        else:
            insert(db, run, batch, wall)
    except BaseException:
        run.lists.clear()
        raise
    try:
        _note(run, calls)
    except BaseException:
        run.unnoted = PendingCalls(len(records), calls)
        raise
    if calls and has_intent(calls):
        run.synced += 1
        if run.synced % _SYNCED_IN_LOG == 0:
            with suppress(sqlite3.Error):  # the next one repeats it
                checkpoint(db)
    return batch.pages


def _insert_with_calls(
    db: sqlite3.Connection,
    run: ClaimedRun,
    batch: PreparedBatch,
    calls: Sequence[Record],
    wall: Callable[[], datetime],
) -> None:
    """Write a batch that contains `calls`, synced if they contain an intent."""
    room = run.once.room_for(batch.seq, batch.chain, calls)
    try:
        with room, synced(db) if has_intent(calls) else nullcontext():
            insert(db, run, batch, wall)
    except OSError as error:
        _raise_once_file_error(error)


def _note(run: ClaimedRun, calls: Sequence[Record]) -> None:
    """Note the last batch in the file of calls. May be repeated where it fails."""
    try:
        run.once.add(run.seq, run.chain, calls)
    except OSError as error:
        _raise_once_file_error(error)


def _raise_once_file_error(error: OSError) -> NoReturn:
    if is_full(error):
        raise error  # the caller waits for space
    text = f"the once calls of the run cannot be kept beside its journal: {error}"
    raise StoreError(text, hint="may this user write there?") from error


def insert(
    db: sqlite3.Connection, run: ClaimedRun, batch: PreparedBatch, wall: Callable[[], datetime]
) -> None:
    """Write a batch, and the run's state after it."""
    events = _state_events(run, batch.records)
    if not batch.bodies and not events:
        db.execute(_INSERT, batch.row)  # one statement is a transaction by itself
    else:
        after = run.progress.after(events)
        with transaction(db):
            keep(db, batch.bodies)
            db.execute(_INSERT, batch.row)
            for event in events:
                _delete_settled(db, run, event)
            if events:
                _update_run(db, run, after, batch.seq, wall().isoformat() if after.status else "")
        run.progress = after
    run.seq, run.chain = batch.seq, batch.chain


@contextmanager
def synced(db: sqlite3.Connection) -> Iterator[None]:
    """On exit, what was written inside and all before it is on the disk."""
    before = db.execute("PRAGMA synchronous").fetchone()[0]
    db.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        db.execute(f"PRAGMA synchronous = {before}")


def has_intent(records: Iterable[Record]) -> bool:
    """Whether one of them is the intent of a call that must not be repeated."""
    for record in records:  # noqa: SIM110 - every stored record passes here
        if type(record) is ToolCalled and record.effect == "once":
            return True
    return False


def _state_events(run: ClaimedRun, records: Sequence[Record]) -> list[Record]:
    """The records that change the run's state; mostly there are none."""
    kinds = set(map(type, records))
    quiet = not run.letters and not run.progress.asking
    if kinds.isdisjoint(_ALWAYS_STATE_EVENTS) and (quiet or NodeFinished not in kinds):
        return []
    return [record for record in records if type(record) in _STATE_EVENTS]


def keep(db: sqlite3.Connection, bodies: Mapping[bytes, bytes]) -> None:
    """Store each body that is not stored yet."""
    for digest, body in bodies.items():
        if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
            values = (digest, packed(body))
            db.execute("INSERT INTO blobs (digest, body) VALUES (?, ?)", values)


def _delete_settled(db: sqlite3.Connection, run: ClaimedRun, event: Record) -> None:
    """Delete the signals that `event` settles."""
    if isinstance(event, RunFinished):
        query = "DELETE FROM letters WHERE run = ? AND (? OR node IS NOT ?)"
        db.execute(query, (run.no, event.status == "succeeded", A_WORD))
    elif run.letters and isinstance(event, (NodeFinished, HumanAnswered)):
        db.execute("DELETE FROM letters WHERE run = ? AND node = ?", (run.no, event.node))


def _update_run(
    db: sqlite3.Connection, run: ClaimedRun, after: RunProgress, seq: int, wall: str
) -> None:
    if after.asking != run.progress.asking:
        db.execute("DELETE FROM asking WHERE run = ?", (run.no,))
        db.executemany("INSERT INTO asking VALUES (?, ?)", [(run.no, n) for n in after.asking])
    if (after.part, after.status) != (run.progress.part, run.progress.status):
        query = "UPDATE runs SET part = ?, status = ?, ended_wall = ?, end_seq = ? WHERE no = ?"
        end = seq if after.status else None
        db.execute(query, (after.part, after.status, wall, end, run.no))
        move(db, run.no, "ended" if after.status else "running")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction: all or nothing. Raises: `sqlite3.Error`."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def checkpoint(db: sqlite3.Connection) -> bool:
    """Write the log back to the database, synced; whether all of it is."""
    busy, log, done = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and log == done


_PAGES: Final = 500
"""Pages written after which the log is checkpointed. SQLite itself does it, in the writer, after
three times as many: that happens only where the disk does not keep up."""


class WalCheckpointer:
    """Checkpoints the log of the journal at `path`, in a thread, after every `_PAGES` pages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None

    def written(self, pages: int) -> None:
        """Count a committed transaction of roughly `pages` pages."""
        self._pages += pages
        if self._pages >= _PAGES and (self._thread is None or not self._thread.is_alive()):
            self._pages = 0
            self._thread = threading.Thread(
                target=self._merge, name="weft-journal-log", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for a running checkpoint."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self) -> None:
        where = f"{self._path.as_uri()}?mode=rw"  # does not create a removed file again
        with suppress(sqlite3.Error), closing(sqlite3.connect(where, uri=True)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
