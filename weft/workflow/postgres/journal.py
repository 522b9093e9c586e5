"""A journal in a PostgreSQL database, written by any number of machines, each run by one process.

Does not know what the records mean.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

import psycopg

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
from weft.engine.journal.rows import (
    Values,
    header_in,
    letter_in,
    records_in,
    wrong_run,
    wrong_values,
)
from weft.workflow.postgres import pruning, reading, writing
from weft.workflow.postgres.faults import faults, place
from weft.workflow.postgres.locks import lock, unlock
from weft.workflow.postgres.reading import Row
from weft.workflow.postgres.schema import CHANGED, MIGRATIONS, Connection, one, prepare
from weft.workflow.postgres.writing import Held

_CONNECT_S = 10


class PostgresJournal:
    """Implements `Journal` in the database that `dsn` names (`postgresql://...`).

    Its tables, `weft_...`, are made when they are missing. A claim lasts as long as the connection:
    who loses it has lost the runs too. Raises: `StoreError` when it cannot be reached.
    """

    quick = False

    def __init__(self, dsn: str, *, clock: Clock | None = None) -> None:
        self._dsn = dsn
        self._where = place(dsn)
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._held: dict[RunId, Held] = {}
        self._version = 0
        self._closed = False
        with faults(self._where):
            self._db = self._listening()

    def begin(self, header: RunHeader) -> Claim:
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        with self._using() as db:
            no = None
            try:
                with db.transaction():
                    no = self._begun(db, header, body)
                    self._take(db, header.run, no)  # before anybody else sees the run
                    writing.keep(db, blobs.bodies)
                    writing.changed(db)
            except psycopg.Error:
                if no is not None:
                    unlock(db, no)
                raise
            held = self._held[header.run] = Held(no, 0, Progress())
        return _PostgresClaim(self, header.run, held)

    def claim(self, run: RunId) -> Claim:
        with self._using() as db:
            row = reading.row_of(db, run)
            self._take(db, run, row.no)
            try:
                row = reading.row_of(db, run)
                db.execute("UPDATE weft_letters SET taken = false WHERE run = %s", (row.no,))
                seq, progress = reading.last_seq(db, row), reading.progress_of(db, row)
            except BaseException:
                unlock(db, row.no)
                raise
            held = self._held[run] = Held(row.no, seq, progress)
        return _PostgresClaim(self, run, held)

    def append(self, run: RunId, records: Sequence[Record]) -> None:
        with self._using() as db:
            held = self._held.get(run)
            if held is None:
                raise StoreError(f"this process has not claimed the run {run!r}, or no longer")
            if records:
                writing.append(db, held, records, self._clock.wall)

    def header(self, run: RunId) -> RunHeader:
        with self._using() as db:
            return header_in(reading.header_of(db, reading.row_of(db, run)), self._values(db).get)

    def summary(self, run: RunId) -> RunSummary:
        with self._using() as db:
            row = reading.row_of(db, run)
            return reading.summary(db, row, row.no in reading.holders(db))

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._using() as db:
            held = reading.holders(db)
            found = reading.rows(db, flow, limit)
            return [reading.summary(db, row, row.no in held) for row in found]

    def records(self, run: RunId, after: int = 0, limit: int | None = None) -> Iterator[Numbered]:
        with self._using() as db:
            row = reading.row_of(db, run)
        return islice(self._numbered(row, after), limit)

    def version(self) -> int:
        with self._using() as db:
            db.execute("SELECT 1")  # what was notified comes with any answer
            return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        body = sealed(encode(letter))
        with self._using() as db, db.transaction():
            query = "INSERT INTO weft_letters (run, node, body) VALUES (%s, %s, %s)"
            db.execute(query, (reading.row_of(db, run).no, letter.node, body))
            writing.changed(db)

    def letters(self, run: RunId) -> Sequence[Letter]:
        with self._using() as db:
            query = """WITH taken AS (UPDATE weft_letters SET taken = true
            WHERE run = %s AND NOT taken RETURNING no, body) SELECT body FROM taken ORDER BY no"""
            found = db.execute(query, (reading.row_of(db, run).no,)).fetchall()
            return [letter_in(body) for (body,) in found]

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> Pruned:
        # On a connection of its own: a session may take a lock that it has as often as it likes.
        with faults(self._where), self._connected() as db:
            gone = [reading.row_of(db, run) for run in runs or ()]
            held = reading.holders(db)
            for row in gone:
                if row.no in held:
                    raise _busy(row.id, held[row.no])
            old = outdated(self.runs(), self._clock.wall(), keep, older_than_s)
            gone += [reading.row_of(db, run) for run in old]
            return pruning.prune(db, gone, max_bytes)

    def check(self) -> Sequence[str]:
        with faults(self._where), self._connected() as db:
            told = list(wrong_values(db.execute("SELECT digest, body FROM weft_blobs").fetchall()))
            get = Values(reading.fetching(db)).get
            for row in reading.rows(db):
                wrong = wrong_run(reading.header_of(db, row), reading.batches_of(db, row), get)
                told += [f"run {row.id!r}: {text}" for text in wrong]
            return told

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._held.clear()
            self._db.close()

    def let_go(self, run: RunId, held: Held) -> None:
        """End the claim that has `held`. Harmless when it has ended."""
        with self._lock:
            if self._held.get(run) is held:
                del self._held[run]
                with suppress(psycopg.Error):  # the lock ends with the connection
                    unlock(self._db, held.no)

    @contextmanager
    def _using(self) -> Iterator[Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self._where} is closed")
            with faults(self._where):
                if self._db.closed:  # and with it every claim has ended
                    self._held.clear()
                    self._db = self._listening()
                yield self._db

    def _connected(self) -> Connection:
        db = psycopg.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=_CONNECT_S,
            application_name=f"process {os.getpid()} on {platform.node()}"[:63],
        )
        try:
            prepare(db, self._where, MIGRATIONS)
        except BaseException:
            db.close()
            raise
        return db

    def _listening(self) -> Connection:
        db = self._connected()
        db.add_notify_handler(self._heard)
        db.execute(f"LISTEN {CHANGED}")
        self._version += 1
        return db

    def _heard(self, _notified: psycopg.Notify) -> None:
        self._version += 1

    def _values(self, db: Connection) -> Values:
        return Values(reading.fetching(db))

    def _begun(self, db: Connection, header: RunHeader, body: bytes) -> int:
        query = """INSERT INTO weft_runs (id, flow, wall, header) VALUES (%s, %s, %s, %s)
        ON CONFLICT DO NOTHING RETURNING no"""
        no: int | None = one(db, query, header.run, header.flow, header.wall, body)
        if no is None:
            raise RunExists(f"{self._where} has a run {header.run!r}")
        return no

    def _take(self, db: Connection, run: RunId, no: int) -> None:
        if run in self._held or not lock(db, no):
            raise _busy(run, reading.holders(db).get(no, "another process"))

    def _numbered(self, row: Row, after: int) -> Iterator[Numbered]:
        while True:
            with self._using() as db:
                page = reading.page_of(db, row, after)
                values = self._values(db)
            for batch in page:
                with self._using():
                    numbered = list(records_in(batch, values.get))
                yield from (record for record in numbered if record.seq > after)
            if not page:
                return
            after = page[-1][0]


def _busy(run: RunId, who: str) -> RunBusy:
    return RunBusy(f"{who} has the run {run!r}", hint="it can be watched with `weft runs`")


class _PostgresClaim:
    def __init__(self, journal: PostgresJournal, run: RunId, held: Held) -> None:
        self._journal = journal
        self._run = run
        self._held = held

    def release(self) -> None:
        self._journal.let_go(self._run, self._held)
