"""A journal in one SQLite file, written by any number of processes, each run by one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from itertools import count, islice
from pathlib import Path
from sqlite3 import Connection, Error

from weft.core.codec import encode
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.conversations import StoredThread, ThreadSummary
from weft.core.ports.journal import (
    Claim,
    Letter,
    Losses,
    LostRun,
    NumberedRecord,
    PruneResult,
    Record,
    RunHeader,
    RunProgress,
    RunSummary,
    Salvage,
)
from weft.core.ports.rates import RateChange, T
from weft.durability.journal.pruning import going
from weft.durability.journal.refusals import HeldClaim, busy, closed, exists, lost, unclaimed
from weft.durability.journal.rows import Blobs, letter_in, node_of, sealed
from weft.durability.journal.sqlite import batch_writer
from weft.durability.journal.sqlite import tables as tables_module
from weft.durability.journal.sqlite.batch_writer import (
    ClaimedRun,
    WalCheckpointer,
)
from weft.durability.journal.sqlite.claims import claim_run, withdraw_run
from weft.durability.journal.sqlite.faults import (
    BUSY_S,
    DiskWait,
    JournalInUse,
    faults,
    faults_of_pruning,
    store_error,
)
from weft.durability.journal.sqlite.locks import FileLock, holder, is_locked, locked
from weft.durability.journal.sqlite.once_log import (
    OnceLog,
    OnceState,
    last_number,
    losses,
    lost_runs,
    orphans,
)
from weft.durability.journal.sqlite.pruning import prune
from weft.durability.journal.sqlite.read_only import ReadOnlyConnection, only_read, reading_will_do
from weft.durability.journal.sqlite.tables import SqliteTables, number, opened
from weft.durability.journal.tables import iter_records
from weft.durability.queue.moves import wake
from weft.durability.queue.sqlite import QueuedTables, SqliteQueue


def complaints(tables: SqliteTables) -> list[str]:
    """The problems of a journal, in sentences. Raises: `sqlite3.Error` for an unreadable one."""
    db = tables.db
    problems = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    problems += [
        f"a row of {row[0]} belongs to no run" for row in db.execute("PRAGMA foreign_key_check")
    ]
    problems += tables.complaints()
    for row in tables.rows():
        if not is_locked(tables.claim_file(row.no)):
            problems += [f"run {row.id!r}: {note}" for note in losses(tables, row).notes]
    return problems + list(orphans(tables))


class SqliteJournal:
    """Implements `Journal` in the file `path`, which is created when it is missing (mode 0600).

    Appended records outlive the process; with `power_safe` also a power cut, at the price of
    waiting for the disk each time. `to_read`: a file that may not be written is opened read-only,
    and writes raise. Raises: `StoreError` when it cannot be opened.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        power_safe: bool = False,
        to_read: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.quick = not power_safe  # else it waits for the disk
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._claimed: dict[RunId, ClaimedRun] = {}
        self._version = self._data_version = 0
        self._closed = False
        self._waits = True  # whether the connection waits for other processes' writes
        self._reading: ReadOnlyConnection | None = None  # where the file may not be written
        self._refusal: StoreError | None = None  # the reason for `_reading`
        self._db = self._opened(power_safe, to_read)
        self._tables = SqliteTables(self._db, self.path)
        inside = QueuedTables(
            self._writing, self._using, self._add_run, self._begin, self._locked, self._claim_locked
        )
        self.queue = SqliteQueue(inside, self._clock)
        self._checkpointer = WalCheckpointer(self.path)

    def begin(self, header: RunHeader) -> Claim:
        return self._begin(header, None)

    def _begin(self, header: RunHeader, queued: Callable[[int], None] | None) -> Claim:
        """As `begin`; `queued` is called with the run's number, in the same transaction."""
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        with self._writing() as tables:
            lock = None
            try:
                with batch_writer.transaction(tables.db):
                    no = self._begun(header, body, blobs)
                    if queued is not None:
                        queued(no)
                    lock = self._locked(header.run, no)  # before others see the run
                    once = OnceLog(tables.once_file(no), OnceState(header.run))
            except BaseException:
                if lock is not None:
                    lock.release()
                raise
            self._claimed[header.run] = ClaimedRun(no, 0, RunProgress(), lock, once)
        return HeldClaim(partial(self._release, header.run, lock))

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        with self._using() as tables:
            return tables.taken(runs)

    def claim(self, run: RunId) -> Claim:
        with self._writing() as tables:
            return self._claim_locked(run, self._locked(run, tables.row_of(run).no))

    def withdraw(self, run: RunId) -> bool:
        with self._writing() as tables:
            claimed = self._claimed.get(run)
            if claimed is None:
                raise unclaimed(run)
            if claimed.seq:
                return False
            withdraw_run(tables, claimed)
            del self._claimed[run]
            self._version += 1
            return True

    def _claim_locked(self, run: RunId, lock: FileLock) -> Claim:
        with self._writing() as tables:
            try:
                self._claimed[run] = claim_run(tables, tables.row_of(run), lock, self._clock.wall)
            except BaseException:
                lock.release()
                raise
        return HeldClaim(partial(self._release, run, lock))

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        self._enter(wait)  # `_writing`, inlined: every step comes here
        try:
            if wait is not self._waits:
                self._set_waiting(wait)
            claimed = self._claimed.get(run)
            if claimed is None:
                raise self._refusal_to_write or unclaimed(run)
            if records:
                intent = batch_writer.has_intent(records)
                if intent and not wait:
                    raise DiskWait(self.path)
                pages = batch_writer.append(self._db, claimed, records, self._clock.wall, intent)
                self._checkpointer.written(pages)
                self._version += 1
        except (Error, OSError) as error:
            raise store_error(self.path, error) from error
        finally:
            self._lock.release()

    def header(self, run: RunId) -> RunHeader:
        with self._using() as tables:
            return tables.header(run)

    def summary(self, run: RunId) -> RunSummary:
        with self._using() as tables:
            return tables.summaries([tables.row_of(run)])[0]

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._using() as tables:
            return tables.summaries(tables.rows(flow, limit))

    def records(
        self, run: RunId, after: int = 0, limit: int | None = None
    ) -> Iterator[NumberedRecord]:
        with self._using() as tables:
            row = tables.row_of(run)
        return islice(iter_records(self._using, row, after, f"the journal {self.path}"), limit)

    def losses(self, run: RunId) -> Losses:
        with self._using() as tables:
            row = tables.row_of(run)
            claimed = is_locked(tables.claim_file(row.no))
            return Losses() if claimed else losses(tables, row)

    def lost_runs(self) -> Sequence[LostRun]:
        with self._using() as tables:
            return list(lost_runs(tables))

    def salvage(self, run: RunId) -> Salvage:
        with self._using() as tables:
            return tables.salvage(tables.row_of(run))

    def version(self) -> int:
        with suppress(JournalInUse), self._using(wait=False) as tables:
            data_version = number(tables.db, "PRAGMA data_version")  # changed by other connections
            if data_version != self._data_version:
                self._data_version = data_version
                self._version += 1
        return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        body = sealed(encode(letter))
        with self._writing() as tables:
            query = "INSERT INTO letters (run, node, body) VALUES (?, ?, ?)"
            row = tables.row_of(run)
            with batch_writer.transaction(tables.db):
                tables.db.execute(query, (row.no, node_of(letter), body))
                wake(tables.db, row.no)
            self._version += 1

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        with self._writing(wait) as tables:
            query = "SELECT no, body FROM letters WHERE run = ? AND NOT taken ORDER BY no"
            rows = tables.db.execute(query, (tables.row_of(run).no,)).fetchall()
            if not rows:
                return []
            with batch_writer.transaction(tables.db):
                query = "UPDATE letters SET taken = 1 WHERE no = ?"
                tables.db.executemany(query, [(no,) for no, _ in rows])
            if run in self._claimed:
                self._claimed[run].letters = True
            return [letter_in(body) for _, body in rows]

    def pending_letters(self, run: RunId) -> Sequence[Letter]:
        with self._using() as tables:
            query = "SELECT body FROM letters WHERE run = ? ORDER BY no"
            rows = tables.db.execute(query, (tables.row_of(run).no,)).fetchall()
        return [letter_in(body) for (body,) in rows]

    def change_rate(self, key: str, change: RateChange[T], now_s: float | None = None) -> T:
        """See `RateStore`."""
        with self._writing() as tables, batch_writer.transaction(tables.db):
            query = "SELECT body FROM rates WHERE key = ?"
            row = tables.db.execute(query, (key,)).fetchone()
            now_s = self._clock.wall().timestamp() if now_s is None else now_s
            text, result = change("" if row is None else row[0], now_s)
            tables.db.execute("INSERT OR REPLACE INTO rates VALUES (?, ?)", (key, text))
        return result

    def threads(self) -> Sequence[ThreadSummary]:
        """See `ConversationStore`."""
        with self._using() as tables:
            return tables_module.threads(tables.db)

    def read_thread(self, thread: str) -> StoredThread:
        """See `ConversationStore`."""
        with self._using() as tables:
            tables.db.execute("BEGIN")
            try:
                return tables_module.read_thread(tables.db, thread)
            finally:
                tables.db.execute("ROLLBACK")

    def append_to_thread(
        self, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None = None
    ) -> bool:
        """See `ConversationStore`."""
        with self._writing() as tables, batch_writer.transaction(tables.db):
            return tables_module.append_to_thread(tables.db, thread, key, messages, summary)

    def delete_thread(self, thread: str) -> bool:
        """See `ConversationStore`."""
        with self._writing() as tables, batch_writer.transaction(tables.db):
            return tables_module.delete_thread(tables.db, thread)

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> PruneResult:
        with self._writing():
            pass
        # On its own connection: concurrent writers wait only near its end.
        with faults_of_pruning(self.path), closing(opened(self.path, power_safe=False)) as db:
            tables, now = SqliteTables(db, self.path), self._clock.wall()
            gone = going(tables, now, keep=keep, older_than_s=older_than_s, runs=runs)
            return prune(tables, gone, max_bytes)

    def check(self) -> Sequence[str]:
        if self._reading is not None:
            with self._using() as tables:
                return complaints(tables)
        with faults(self.path), closing(opened(self.path, power_safe=False)) as db:
            return complaints(SqliteTables(db, self.path))

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for run in self._claimed.values():
                    run.once.close()
                    run.lock.release()
                self._claimed.clear()
                self._checkpointer.close()
                self._db.close()

    def _release(self, run: RunId, lock: FileLock) -> None:
        with self._lock:
            claimed = self._claimed.get(run)
            if claimed is not None and claimed.lock is lock:
                del self._claimed[run]
                self._end_log(claimed)
            lock.release()

    def _end_log(self, run: ClaimedRun) -> None:
        """Close the log of a run; remove it once the end of a succeeded run is in the database."""
        run.once.close()
        if run.progress.status == "succeeded":  # it is never resumed
            with suppress(Error, OSError):  # the file then stays until the run is pruned
                if run.once.empty or batch_writer.checkpoint(self._db):
                    run.once.remove()

    def _enter(self, wait: bool) -> None:
        if not self._lock.acquire(blocking=wait):
            raise JournalInUse(self.path)
        if self._closed:
            self._lock.release()
            raise closed(f"the journal {self.path}")

    @contextmanager
    def _using(self, wait: bool = True) -> Iterator[SqliteTables]:
        self._enter(wait)
        try:
            if self._reading is not None:
                with self._renewed(self._reading):
                    yield self._set_waiting(wait)
            else:
                yield self._set_waiting(wait)
        except (Error, OSError) as error:
            raise store_error(self.path, error) from error
        finally:
            self._lock.release()

    def _set_waiting(self, wait: bool) -> SqliteTables:
        if wait is not self._waits:
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000 if wait else 0:.0f}")
            self._waits = wait
        return self._tables

    @property
    def _refusal_to_write(self) -> StoreError | None:
        return None if self._refusal is None else only_read(self._refusal)

    def _writing(self, wait: bool = True) -> AbstractContextManager[SqliteTables]:
        refusal = self._refusal_to_write
        if refusal is not None:
            raise refusal
        return self._using(wait)

    def _opened(self, power_safe: bool, to_read: bool) -> Connection:
        try:
            with faults(self.path):
                return opened(self.path, power_safe=power_safe)
        except StoreError as error:
            if not to_read or not reading_will_do(self.path, error):
                raise
            self._refusal = error
        with faults(self.path):
            self._reading = ReadOnlyConnection(self.path)
        return self._reading.db

    def _renewed(self, reading: ReadOnlyConnection) -> AbstractContextManager[None]:
        """Reconnect if others wrote, and check for writes at the end."""
        if reading.renew():
            self._db, self._waits = reading.db, True
            self._tables = SqliteTables(self._db, self.path)
            self._version += 1
        return reading.undisturbed()

    def _add_run(self, header: RunHeader) -> int:
        """Insert an unclaimed run, within a transaction."""
        blobs = Blobs()
        return self._begun(header, sealed(encode(header, blobs.keep)), blobs, logged=False)

    def _begun(self, header: RunHeader, body: bytes, blobs: Blobs, *, logged: bool = True) -> int:
        if self._db.execute("SELECT 1 FROM runs WHERE id = ?", (header.run,)).fetchone():
            raise exists(f"the journal {self.path}", header.run)
        for gone in lost_runs(self._tables):
            if gone.run == header.run:
                raise lost(gone)
        batch_writer.keep(self._db, blobs.bodies)
        query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'runs'"
        # The number of a lost run is not reused.
        no = max(number(self._db, query), last_number(self._tables)) + 1
        query = "INSERT INTO runs (no, id, flow, wall, header, logged) VALUES (?, ?, ?, ?, ?, ?)"
        self._db.execute(query, (no, header.run, header.flow, header.wall, body, logged))
        self._version += 1
        return no

    def _locked(self, run: RunId, no: int) -> FileLock:
        file = self._tables.claim_file(no)
        lock = locked(file)
        if lock is None:
            raise busy(run, holder(file))
        return lock


_COMPANIONS = ("-wal", "-shm", ".claims", ".once")


def set_aside(path: Path) -> Path:
    """Rename the journal at `path` to `NAME.aside-N` and return that.

    Raises: `StoreError` when a process has a run of it, or it cannot be renamed.
    """
    claims = path.with_name(f"{path.name}.claims")
    if claims.is_dir() and any(is_locked(file) for file in claims.iterdir()):
        raise StoreError(f"the journal {path} is in use: a process has one of its runs")
    free = (path.with_name(f"{path.name}.aside-{number}") for number in count(1))
    aside = next(name for name in free if not name.exists())
    try:
        for end in _COMPANIONS:
            companion = path.with_name(path.name + end)
            if companion.exists():
                companion.rename(aside.with_name(aside.name + end))
        path.rename(aside)
    except OSError as error:
        raise StoreError(f"{path} cannot be moved away: {error}") from error
    return aside
