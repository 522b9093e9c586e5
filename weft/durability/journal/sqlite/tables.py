"""The tables of a journal in SQLite: their versions, opening and queries."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.conversations import StoredThread, ThreadSummary
from weft.durability.journal.refusals import newer
from weft.durability.journal.rows import START, RecordBatch
from weft.durability.journal.sqlite.faults import BUSY_S, MOVE_IT, damaged
from weft.durability.journal.sqlite.locks import holder, is_locked
from weft.durability.journal.tables import PAGE, RunRow, Tables

OURS = 0x7765666A  # "wefj" in ASCII, in the file's header
_LONGEST_LOG_PAGES = 1_500  # after which a writer merges the log itself; see `WalCheckpointer`
_LOG_BYTES = 1 << 24  # the disk space that the write-ahead log may keep after a checkpoint
MIGRATIONS: Sequence[Sequence[str]] = (
    (
        # `no` is never reused, since files and batches are named after it.
        """CREATE TABLE runs (no INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        flow TEXT NOT NULL, wall TEXT NOT NULL, ended_wall TEXT NOT NULL DEFAULT '',
        part INTEGER NOT NULL DEFAULT 1, status TEXT, header BLOB NOT NULL)""",
        # `key`: the run's number times 2^32 plus the `seq` of the last record in the body.
        "CREATE TABLE batches (key INTEGER PRIMARY KEY, part INTEGER NOT NULL, body BLOB NOT NULL)",
        "CREATE TABLE blobs (no INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body NOT NULL)",
        """CREATE TABLE asking (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL, PRIMARY KEY (run, node))""",
        """CREATE TABLE letters (no INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT, taken INTEGER NOT NULL DEFAULT 0, body BLOB NOT NULL)""",
        "CREATE INDEX letters_of ON letters (run)",
    ),
    (
        # See `weft.durability.journal.rows`; NULL in older rows.
        "ALTER TABLE batches ADD COLUMN chain BLOB",
        # The number of the last record of an ended run, since its row cannot be lost alone.
        "ALTER TABLE runs ADD COLUMN end_seq INTEGER",
        # Whether there is a file of its `once` calls next to the database.
        "ALTER TABLE runs ADD COLUMN logged INTEGER NOT NULL DEFAULT 0",
    ),
    # Records may be lists of fields (`weft.core.codec.classes`), which an older weft cannot read.
    (),
    # Rate limits: see `weft.durability.rates.window`.
    (
        "CREATE TABLE rates (key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
        # Conversations: see `weft.core.ports.conversations`.
        """CREATE TABLE messages (thread TEXT NOT NULL, number INTEGER NOT NULL,
        body TEXT NOT NULL, key TEXT NOT NULL, part INTEGER NOT NULL,
        PRIMARY KEY (thread, number), UNIQUE (thread, key, part)) WITHOUT ROWID""",
        """CREATE TABLE summaries (thread TEXT PRIMARY KEY, covers INTEGER NOT NULL,
        body TEXT NOT NULL) WITHOUT ROWID""",
    ),
    # The queue of runs and its schedules: see `weft.core.ports.queue`.
    (
        """CREATE TABLE queue (run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
        state TEXT NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
        queue TEXT NOT NULL, version TEXT NOT NULL, priority INTEGER NOT NULL, due REAL NOT NULL,
        limit_key TEXT NOT NULL, at_most INTEGER, max_attempts INTEGER NOT NULL)""",
        """CREATE INDEX queue_order ON queue (priority DESC, run)
        WHERE state IN ('queued', 'running')""",
        "CREATE INDEX queue_limits ON queue (limit_key) WHERE state = 'running'",
        """CREATE TABLE schedules (name TEXT PRIMARY KEY, cron TEXT NOT NULL, zone TEXT NOT NULL,
        catch_up TEXT NOT NULL, next REAL NOT NULL, header BLOB NOT NULL,
        queue TEXT NOT NULL, version TEXT NOT NULL, priority INTEGER NOT NULL, due REAL NOT NULL,
        limit_key TEXT NOT NULL, at_most INTEGER, max_attempts INTEGER NOT NULL) WITHOUT ROWID""",
    ),
    # Workers, with their heartbeats.
    (
        """CREATE TABLE workers (id TEXT PRIMARY KEY, expires REAL NOT NULL, beat REAL NOT NULL,
        body TEXT NOT NULL) WITHOUT ROWID""",
    ),
)
"""The statements from version N, counted from 0, to N + 1. Only ever append to it."""
_READ_FROM = 2
"""The first version that can be read without migration, where a journal may not be written."""


def opened(
    path: Path, *, power_safe: bool, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> sqlite3.Connection:
    """A connection to the journal at `path`, which is created (mode 0600) or migrated.

    Raises: `StoreError` for a file of another program or of a newer weft, which stays unchanged;
    `sqlite3.Error`, `OSError`, such as `PermissionError` for a file that may not be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_file(path)
    if not os.access(path, os.W_OK):  # SQLite would open it, and fail when something is written
        raise PermissionError(errno.EACCES, "this user may not write to it")
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path, migrations)
        db.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG_PAGES}")
        db.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    except BaseException:
        db.close()
        raise
    return db


def make_file(path: Path) -> None:
    """Create the file of a database (mode 0600) where there is none."""
    # An existing file is not opened here: closing it would end SQLite's locks on it for other
    # connections of this process, and the next process to close it would take their log.
    if not path.exists():
        with suppress(FileExistsError):
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
            os.close(os.open(os.path.realpath(path), flags, 0o600))


def check_format(
    db: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> None:
    """Refuse a format that cannot be read as it is. Raises: `StoreError`, `sqlite3.Error`."""
    db.execute("PRAGMA trusted_schema = OFF")  # the file may come from anywhere
    current, version = _is_current(db, path, migrations), number(db, "PRAGMA user_version")
    if not current and version < _READ_FROM:
        text = f"the journal {path} has format {version}, and this weft reads {len(migrations)}"
        hint = "`weft runs`, by somebody who may write to it, brings it up to date"
        raise StoreError(text, hint=hint)


def _prepare(db: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]]) -> None:
    db.execute("PRAGMA trusted_schema = OFF")  # the file may come from anywhere
    if _is_current(db, path, migrations):
        return
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect in empty files only
    _retry_while_busy(db, "PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        if not _is_current(db, path, migrations):
            _migrate(db, migrations)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _is_current(db: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]]) -> bool:
    version, ours = number(db, "PRAGMA user_version"), number(db, "PRAGMA application_id") == OURS
    if not ours and (version or number(db, "SELECT count(*) FROM sqlite_master")):
        raise StoreError(f"{path} is a database of another program", hint=MOVE_IT)
    if version > len(migrations):
        raise newer(f"the journal {path}", version, len(migrations))
    if ours and not version:
        raise damaged(path, "it has no version")
    return version == len(migrations)


def _migrate(db: sqlite3.Connection, migrations: Sequence[Sequence[str]]) -> None:
    for step in migrations[number(db, "PRAGMA user_version") :]:
        for statement in step:
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {OURS}")
    db.execute(f"PRAGMA user_version = {len(migrations)}")


def _retry_while_busy(db: sqlite3.Connection, statement: str) -> None:
    # SQLite itself does not wait where two processes turn one new file into a journal.
    end_s = time.monotonic() + BUSY_S
    while True:
        try:
            db.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end_s:
                raise
            time.sleep(0.01)


def number(db: sqlite3.Connection, query: str, *parameters: object) -> int:
    """The single number that a query returns; 0 for NULL."""
    return int(db.execute(query, parameters).fetchone()[0] or 0)


SEQ_BITS = 32
_ROW = "SELECT no, id, flow, wall, ended_wall, part, status, end_seq, logged FROM runs"


def base_of(no: int) -> int:
    """The lower bound of the keys of a run's batches; that of the next run is the upper bound."""
    return no << SEQ_BITS


class SqliteTables(Tables):
    """The tables in the file `path`."""

    errors = (sqlite3.Error,)

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        super().__init__()
        self.db = db
        self._claims = path.with_name(f"{path.name}.claims")
        self.once_files = path.with_name(f"{path.name}.once")

    def claim_file(self, no: int) -> Path:
        """The file whose lock is the claim on a run."""
        return self._claims / str(no)

    def once_file(self, no: int) -> Path:
        """The file of a run's `once` calls, next to the database."""
        return self.once_files / str(no)

    def found(self, run: RunId) -> RunRow | None:
        found = self.db.execute(f"{_ROW} WHERE id = ?", (run,)).fetchone()
        return None if found is None else RunRow(*found)

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        """The ids among `runs` that exist."""
        marks = ",".join("?" * len(runs))
        query = f"SELECT id FROM runs WHERE id IN ({marks})"  # noqa: S608 - question marks
        return frozenset(run for (run,) in self.db.execute(query, tuple(runs)))

    def has_number(self, no: int) -> bool:
        """Whether a run has this number."""
        return self.db.execute("SELECT 1 FROM runs WHERE no = ?", (no,)).fetchone() is not None

    def having_runs(self, numbers: Iterable[int]) -> set[int]:
        """The numbers among `numbers` that runs have, in one query."""
        query = "SELECT no FROM runs WHERE no IN (SELECT value FROM json_each(?))"
        return {no for (no,) in self.db.execute(query, (json.dumps(list(numbers)),))}

    def rows(self, flow: str | None = None, limit: int | None = None) -> list[RunRow]:
        query = f"{_ROW} WHERE ?1 IS NULL OR flow = ?1 ORDER BY no DESC LIMIT ?2"
        found = self.db.execute(query, (flow, -1 if limit is None else limit))
        return [RunRow(*row) for row in found]

    def sealed_header(self, row: RunRow) -> bytes | None:
        found = self.db.execute("SELECT header FROM runs WHERE no = ?", (row.no,)).fetchone()
        return None if found is None else bytes(found[0])

    def asking(self, row: RunRow) -> list[NodeId]:
        query = "SELECT node FROM asking WHERE run = ? ORDER BY rowid"
        return [NodeId(node) for (node,) in self.db.execute(query, (row.no,))]

    def last_seq(self, row: RunRow) -> int:
        base, end = base_of(row.no), base_of(row.no + 1)
        query = "SELECT max(key) FROM batches WHERE key > ? AND key < ?"
        last = number(self.db, query, base, end)
        return last - base if last else 0

    def page_of(self, row: RunRow, after: int) -> list[RecordBatch]:
        base, end = base_of(row.no), base_of(row.no + 1)
        query = """SELECT key, part, body, chain FROM batches WHERE key > ? AND key < ?
        ORDER BY key LIMIT ?"""
        found = self.db.execute(query, (base + after, end, PAGE))
        return [RecordBatch(key - base, *rest) for key, *rest in found]

    def chain_at(self, row: RunRow, seq: int) -> bytes:
        """The chain at the batch that ends with the record `seq`; empty without such a batch."""
        query = "SELECT chain FROM batches WHERE key = ?"
        found = self.db.execute(query, (base_of(row.no) + seq,)).fetchone()
        return START if found is None or found[0] is None else bytes(found[0])

    def batches_after(self, row: RunRow, seq: int) -> int:
        """The number of batches that end after the record `seq`."""
        keys = base_of(row.no) + seq, base_of(row.no + 1)
        return number(self.db, "SELECT count(*) FROM batches WHERE key > ? AND key < ?", *keys)

    def fetch(self, digest: bytes) -> bytes | None:
        row = self.db.execute("SELECT body FROM blobs WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else row[0]

    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        return self.db.execute("SELECT digest, body FROM blobs")

    def holders(self, rows: Sequence[RunRow]) -> dict[int, str]:
        files = {row.no: self.claim_file(row.no) for row in rows}
        return {no: holder(file) for no, file in files.items() if is_locked(file)}


def threads(db: sqlite3.Connection) -> list[ThreadSummary]:
    """All threads, by id."""
    query = """SELECT thread, count(*), coalesce(max(covers), 0)
    FROM messages LEFT JOIN summaries USING (thread) GROUP BY thread ORDER BY thread"""
    return [ThreadSummary(*row) for row in db.execute(query)]


def read_thread(db: sqlite3.Connection, thread: str) -> StoredThread:
    """A thread, within a transaction of the caller."""
    query = "SELECT body FROM messages WHERE thread = ? ORDER BY number"
    bodies = tuple(body for (body,) in db.execute(query, (thread,)))
    query = "SELECT body, covers FROM summaries WHERE thread = ?"
    found = db.execute(query, (thread,)).fetchone()
    return StoredThread(bodies) if found is None else StoredThread(bodies, *found)


def append_to_thread(
    db: sqlite3.Connection,
    thread: str,
    key: str,
    messages: Sequence[str],
    summary: tuple[str, int] | None,
) -> bool:
    """Append `messages`, within a transaction of the caller; see `ConversationStore`."""
    query = "SELECT 1 FROM messages WHERE thread = ? AND key = ?"
    if db.execute(query, (thread, key)).fetchone() is not None:
        return False
    query = "SELECT coalesce(max(number), 0) FROM messages WHERE thread = ?"
    last = db.execute(query, (thread,)).fetchone()[0]
    rows = [(thread, last + n, body, key, n) for n, body in enumerate(messages, 1)]
    db.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", rows)
    if summary is not None:
        query = """INSERT INTO summaries VALUES (?, ?, ?) ON CONFLICT (thread) DO UPDATE
        SET covers = excluded.covers, body = excluded.body WHERE excluded.covers > covers"""
        db.execute(query, (thread, summary[1], summary[0]))
    return True


def delete_thread(db: sqlite3.Connection, thread: str) -> bool:
    """Remove a thread, within a transaction of the caller."""
    db.execute("DELETE FROM summaries WHERE thread = ?", (thread,))
    return db.execute("DELETE FROM messages WHERE thread = ?", (thread,)).rowcount > 0
