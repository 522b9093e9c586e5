"""A journal in one SQLite file, written by any number of processes, each run by one of them.

Does not know what the records mean.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from weft.core.codec import encode
from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.ids import RunId
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.journal import (
    Claim,
    Letter,
    Numbered,
    Pruned,
    Record,
    RunHeader,
    RunSummary,
)
from weft.core.progress import Progress, outdated
from weft.engine.journal.blobs import Blobs, sealed
from weft.engine.journal.rows import Values, header_in, letter_in, records_in
from weft.engine.journal.sqlite import pruning, reading, writing
from weft.engine.journal.sqlite.checking import complaints
from weft.engine.journal.sqlite.faults import faults
from weft.engine.journal.sqlite.locks import FileLock, holder, is_locked, locked
from weft.engine.journal.sqlite.reading import SEQ_BITS, Row
from weft.engine.journal.sqlite.schema import number, opened
from weft.engine.journal.sqlite.writing import Held

_PAGE = 64


class SqliteJournal:
    """Implements `Journal` in the file `path`, which is made when it is missing (mode 0600).

    What was appended outlives the process; with `power_safe` also a power cut, at the price of
    waiting for the disk each time. Raises: `StoreError` when the file cannot be opened.
    """

    def __init__(
        self, path: Path | str, *, power_safe: bool = False, clock: Clock | None = None
    ) -> None:
        self.path = Path(path).absolute()
        self.quick = not power_safe  # else it waits for the disk
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._held: dict[RunId, Held] = {}
        self._version = self._seen = 0
        self._closed = False
        with faults(self.path):
            self._db = opened(self.path, power_safe=power_safe)
        self._values = Values(reading.fetching(self._db))

    def begin(self, header: RunHeader) -> Claim:
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        with self._using() as db:
            lock = None
            try:
                with writing.transaction(db):
                    no = self._begun(header, body, blobs)
                    lock = self._locked(header.run, no)  # before anybody else sees the run
            except BaseException:
                if lock is not None:
                    lock.release()
                raise
            self._held[header.run] = Held(no, no << SEQ_BITS, 0, Progress(), lock)
        return _SqliteClaim(self, header.run, lock)

    def claim(self, run: RunId) -> Claim:
        with self._using() as db:
            lock = self._locked(run, reading.row_of(db, run).no)
            try:
                row = reading.row_of(db, run)
                given = number(db, "SELECT count(*) FROM letters WHERE run = ?", row.no) > 0
                if given:
                    db.execute("UPDATE letters SET taken = 0 WHERE run = ?", (row.no,))
                seq, progress = reading.last_seq(db, row), reading.progress_of(db, row)
            except BaseException:
                lock.release()
                raise
            self._held[run] = Held(row.no, row.base, seq, progress, lock, given)
        return _SqliteClaim(self, run, lock)

    def append(self, run: RunId, records: Sequence[Record]) -> None:
        with self._using() as db:
            held = self._held.get(run)
            if held is None:
                raise StoreError(f"this process has not claimed the run {run!r}")
            if records:
                writing.append(db, held, records, self._clock.wall)
                self._version += 1

    def header(self, run: RunId) -> RunHeader:
        with self._using() as db:
            return header_in(reading.header_of(db, reading.row_of(db, run)), self._values.get)

    def summary(self, run: RunId) -> RunSummary:
        with self._using() as db:
            return self._summary(db, reading.row_of(db, run))

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._using() as db:
            return [self._summary(db, row) for row in reading.rows(db, flow, limit)]

    def records(self, run: RunId, after: int = 0, limit: int | None = None) -> Iterator[Numbered]:
        with self._using() as db:
            row = reading.row_of(db, run)
        return islice(self._numbered(row, after), limit)

    def version(self) -> int:
        with self._using() as db:
            seen = number(db, "PRAGMA data_version")  # tells what other connections wrote
            if seen != self._seen:
                self._seen = seen
                self._version += 1
            return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        body = sealed(encode(letter))
        with self._using() as db:
            query = "INSERT INTO letters (run, node, body) VALUES (?, ?, ?)"
            db.execute(query, (reading.row_of(db, run).no, letter.node, body))
            self._version += 1

    def letters(self, run: RunId) -> Sequence[Letter]:
        with self._using() as db:
            query = "SELECT no, body FROM letters WHERE run = ? AND NOT taken ORDER BY no"
            found = db.execute(query, (reading.row_of(db, run).no,)).fetchall()
            if not found:
                return []
            with writing.transaction(db):
                taken = "UPDATE letters SET taken = 1 WHERE no = ?"
                db.executemany(taken, [(no,) for no, _ in found])
            if run in self._held:
                self._held[run].letters = True
            return [letter_in(body) for _, body in found]

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> Pruned:
        # On a connection of its own: whoever writes meanwhile is kept waiting at the end only.
        with faults(self.path), closing(opened(self.path, power_safe=False)) as db:
            gone = [reading.row_of(db, run) for run in runs or ()]
            for row in gone:
                if is_locked(self._claim_file(row.no)):
                    raise self._busy(row.id, row.no)
            old = outdated(self.runs(), self._clock.wall(), keep, older_than_s)
            gone += [reading.row_of(db, run) for run in old]
            return pruning.prune(db, gone, max_bytes, self._claim_file)

    def check(self) -> Sequence[str]:
        with faults(self.path), closing(opened(self.path, power_safe=False)) as db:
            return complaints(db)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for held in self._held.values():
                    held.lock.release()
                self._held.clear()
                self._db.close()

    def let_go(self, run: RunId, lock: FileLock) -> None:
        """End the claim that has `lock`. Harmless when it has ended."""
        with self._lock:
            held = self._held.get(run)
            if held is not None and held.lock is lock:
                del self._held[run]
            lock.release()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"the journal {self.path} is closed")
            with faults(self.path):
                yield self._db

    def _begun(self, header: RunHeader, body: bytes, blobs: Blobs) -> int:
        if self._db.execute("SELECT 1 FROM runs WHERE id = ?", (header.run,)).fetchone():
            raise RunExists(f"the journal {self.path} has a run {header.run!r}")
        writing.keep(self._db, blobs.bodies)
        query = "INSERT INTO runs (id, flow, wall, header) VALUES (?, ?, ?, ?)"
        made = self._db.execute(query, (header.run, header.flow, header.wall, body))
        self._version += 1
        return made.lastrowid or 0

    def _locked(self, run: RunId, no: int) -> FileLock:
        lock = locked(self._claim_file(no))
        if lock is None:
            raise self._busy(run, no)
        return lock

    def _busy(self, run: RunId, no: int) -> RunBusy:
        who = holder(self._claim_file(no))
        return RunBusy(f"{who} has the run {run!r}", hint="it can be watched with `weft runs`")

    def _claim_file(self, no: int) -> Path:
        return self.path.with_name(f"{self.path.name}.claims") / str(no)

    def _summary(self, db: sqlite3.Connection, row: Row) -> RunSummary:
        progress = reading.progress_of(db, row)
        held = progress.status is None and is_locked(self._claim_file(row.no))
        return RunSummary(
            run=row.id,
            flow=row.flow,
            standing=progress.standing(held),
            wall=row.wall,
            ended_wall=row.ended_wall,
            parts=row.part,
            records=reading.last_seq(db, row),
            asking=tuple(progress.asking),
        )

    def _numbered(self, row: Row, after: int) -> Iterator[Numbered]:
        while True:
            with self._using() as db:
                page = list(reading.batches_of(db, row, after, _PAGE))
            for batch in page:
                with self._using():
                    numbered = list(records_in(batch, self._values.get))
                yield from (one for one in numbered if one.seq > after)
                after = batch[0]
            if len(page) < _PAGE:
                return


class _SqliteClaim:
    def __init__(self, journal: SqliteJournal, run: RunId, lock: FileLock) -> None:
        self._journal = journal
        self._run = run
        self._lock = lock

    def release(self) -> None:
        self._journal.let_go(self._run, self._lock)
