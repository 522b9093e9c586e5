"""What is written for a run that this process has, and the checkpoint of SQLite's log."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

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

_INSERT = "INSERT INTO batches VALUES (?, ?, ?, ?)"
_PAGE_BYTES = 4096
_SYNCED_IN_LOG = 32
"""Batches with intents after which the log is put in its place: what it holds is soon lost."""
_ALWAYS_TELLING = frozenset({HumanAsked, HumanAnswered, RunFinished, RunResumed})
_TELLING = _ALWAYS_TELLING | {NodeFinished}  # where there are questions, or letters to nodes


@dataclass(frozen=True, slots=True)
class PendingCalls:
    """The last batch, of so many `records`, whose `calls` are not in the file of calls yet."""

    records: int
    calls: Sequence[Record]


@dataclass(slots=True)
class ClaimedRun:
    """A run that this process has.

    `seq` is the number of its last record, `chain` the chain there. `once`: the file of its calls.
    `unnoted`: what could not be written there, and is not appended again when it is tried again.
    """

    no: int
    seq: int
    progress: RunProgress
    lock: FileLock
    once: OnceLog
    chain: bytes = START
    letters: bool = False
    """Whether there may be letters to it that were given out and not settled."""
    unnoted: PendingCalls | None = None
    synced: int = 0
    """How many batches with intents this process has written."""
    lists: WrittenLists = field(default_factory=WrittenLists)
    """Lists in the batches of this process, whose parts stay as long as the run does."""


class PreparedBatch:
    """A batch that is about to be written behind the last of a run."""

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
        """What its records keep apart."""
        self.pages = 1 + len(body) // _PAGE_BYTES
        """How many pages of the database it changes, roughly: each value has one in an index."""
        if blobs.bodies:
            self.pages += sum(2 + len(body) // _PAGE_BYTES for body in blobs.bodies.values())


def append(
    db: sqlite3.Connection,
    held: ClaimedRun,
    records: Sequence[Record],
    wall: Callable[[], datetime],
    intent: bool,
) -> int:
    """Write a batch: all of it or nothing; its pages. `wall`: the clock, for the time of an end.

    What could not be noted beside the database comes first, and is not written again. `intent`: see
    `has_intent`.
    """
    if held.unnoted is not None:
        records = records[held.unnoted.records :]
        _note(held, held.unnoted.calls)
        held.unnoted = None
        if not records:
            return 0
    try:
        part, lists = held.progress.part, held.lists
        batch = PreparedBatch(held.no, held.seq, held.chain, part, records, lists)
        calls = held.once.calls(records) if intent or held.once.waits else ()
        if calls:
            _insert_with_calls(db, held, batch, calls, wall)
        else:
            insert(db, held, batch, wall)
    except BaseException:
        held.lists.clear()
        raise
    try:
        _note(held, calls)
    except BaseException:
        held.unnoted = PendingCalls(len(records), calls)
        raise
    if calls and has_intent(calls):
        held.synced += 1
        if held.synced % _SYNCED_IN_LOG == 0:
            with suppress(sqlite3.Error):  # the next one will do
                checkpoint(db)
    return batch.pages


def _insert_with_calls(
    db: sqlite3.Connection,
    held: ClaimedRun,
    batch: PreparedBatch,
    calls: Sequence[Record],
    wall: Callable[[], datetime],
) -> None:
    """Write what was prepared, with `calls` in it, for whose intents it is synced."""
    room = held.once.room_for(batch.seq, batch.chain, calls)
    with _beside(), room, synced(db) if has_intent(calls) else nullcontext():
        insert(db, held, batch, wall)


def _note(held: ClaimedRun, calls: Sequence[Record]) -> None:
    """Have the file of calls tell of the last batch. May be repeated where it fails."""
    try:
        held.once.add(held.seq, held.chain, calls)
    except OSError as error:
        if is_full(error):
            raise  # whoever has the journal waits for room
        raise _not_kept(error) from error


@contextmanager
def _beside() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        raise _not_kept(error) from error


def _not_kept(error: OSError) -> StoreError:
    told = f"the once calls of the run cannot be kept beside its journal: {error}"
    return StoreError(told, hint="may this user write there?")


def insert(
    db: sqlite3.Connection, held: ClaimedRun, batch: PreparedBatch, wall: Callable[[], datetime]
) -> None:
    """Write what was prepared, and how the run stands then."""
    telling = _telling(held, batch.records)
    if not batch.bodies and not telling:
        db.execute(_INSERT, batch.row)  # one statement is a transaction by itself
    else:
        after = held.progress.after(telling)
        with transaction(db):
            keep(db, batch.bodies)
            db.execute(_INSERT, batch.row)
            for record in telling:
                _settle(db, held, record)
            if telling:
                _stand(db, held, after, batch.seq, wall().isoformat() if after.status else "")
        held.progress = after
    held.seq, held.chain = batch.seq, batch.chain


@contextmanager
def synced(db: sqlite3.Connection) -> Iterator[None]:
    """What is written meanwhile is on the disk when it is done, and all that came before it."""
    before = db.execute("PRAGMA synchronous").fetchone()[0]
    db.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        db.execute(f"PRAGMA synchronous = {before}")


def has_intent(records: Iterable[Record]) -> bool:
    """Whether one of them is the intent of a call that must not be repeated."""
    for record in records:  # noqa: SIM110 - every record that is kept passes here
        if type(record) is ToolCalled and record.effect == "once":
            return True
    return False


def _telling(held: ClaimedRun, records: Sequence[Record]) -> list[Record]:
    """The records that change how the run stands; mostly there are none."""
    kinds = set(map(type, records))
    quiet = not held.letters and not held.progress.asking
    if kinds.isdisjoint(_ALWAYS_TELLING) and (quiet or NodeFinished not in kinds):
        return []
    return [record for record in records if type(record) in _TELLING]


def keep(db: sqlite3.Connection, bodies: Mapping[bytes, bytes]) -> None:
    """Store each body that is not there yet."""
    for digest, body in bodies.items():
        if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
            values = (digest, packed(body))
            db.execute("INSERT INTO blobs (digest, body) VALUES (?, ?)", values)


def _settle(db: sqlite3.Connection, held: ClaimedRun, record: Record) -> None:
    if isinstance(record, RunFinished):
        query = "DELETE FROM letters WHERE run = ? AND (? OR node IS NOT ?)"
        db.execute(query, (held.no, record.status == "succeeded", A_WORD))
    elif held.letters and isinstance(record, (NodeFinished, HumanAnswered)):
        db.execute("DELETE FROM letters WHERE run = ? AND node = ?", (held.no, record.node))


def _stand(
    db: sqlite3.Connection, held: ClaimedRun, after: RunProgress, seq: int, wall: str
) -> None:
    if after.asking != held.progress.asking:
        db.execute("DELETE FROM asking WHERE run = ?", (held.no,))
        db.executemany("INSERT INTO asking VALUES (?, ?)", [(held.no, n) for n in after.asking])
    if (after.part, after.status) != (held.progress.part, held.progress.status):
        query = "UPDATE runs SET part = ?, status = ?, ended_wall = ?, end_seq = ? WHERE no = ?"
        end = seq if after.status else None
        db.execute(query, (after.part, after.status, wall, end, held.no))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Raises: `sqlite3.Error`."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def checkpoint(db: sqlite3.Connection) -> bool:
    """Put what is in the log in its place, synced; whether all of it is."""
    busy, log, done = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not busy and log == done


_PAGES: Final = 500
"""Pages written after which the log is merged. SQLite merges it itself after three times that, in
the writer: so much is written only where the disk does not keep up."""


class WalCheckpointer:
    """Merges the log of the journal at `path`, in a thread, each time that enough is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None

    def written(self, pages: int) -> None:
        """A transaction of so many `pages`, roughly, was committed."""
        self._pages += pages
        if self._pages >= _PAGES and (self._thread is None or not self._thread.is_alive()):
            self._pages = 0
            self._thread = threading.Thread(
                target=self._merge, name="weft-journal-log", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for what is under way."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self) -> None:
        where = f"{self._path.as_uri()}?mode=rw"  # a file that somebody removed stays removed
        with suppress(sqlite3.Error), closing(sqlite3.connect(where, uri=True)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
