"""A journal in a PostgreSQL database, written by any number of machines, each run by one process.

Does not know what the records mean.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice

import psycopg

from weft.core.codec import encode
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
from weft.core.progress import Progress
from weft.engine.journal.blobs import Blobs, sealed
from weft.engine.journal.claimed import Claimed
from weft.engine.journal.paging import numbered
from weft.engine.journal.pruning import going
from weft.engine.journal.refusals import busy, closed, exists, unclaimed
from weft.engine.journal.rows import letter_in, node_of
from weft.workflow.postgres import writing
from weft.workflow.postgres.faults import faults, place
from weft.workflow.postgres.locks import lock, unlock
from weft.workflow.postgres.pruning import prune
from weft.workflow.postgres.schema import CHANGED, MIGRATIONS, Connection, one, prepare
from weft.workflow.postgres.tables import PostgresTables
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
            self._tables = self._listening()

    def begin(self, header: RunHeader) -> Claim:
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        with self._using() as tables:
            db, no = tables.db, None
            try:
                with db.transaction():
                    no = self._begun(db, header, body)
                    self._take(tables, header.run, no)  # before anybody else sees the run
                    writing.keep(db, blobs.bodies)
                    writing.changed(db)
            except psycopg.Error:
                if no is not None:
                    unlock(db, no)
                raise
            held = self._held[header.run] = Held(no, 0, Progress())
        return Claimed(partial(self._let_go, header.run, held))

    def claim(self, run: RunId) -> Claim:
        with self._using() as tables:
            db, row = tables.db, tables.row_of(run)
            self._take(tables, run, row.no)
            try:
                row = tables.row_of(run)
                db.execute("UPDATE weft_letters SET taken = false WHERE run = %s", (row.no,))
                seq, progress = tables.last_seq(row), tables.progress_of(row)
            except BaseException:
                unlock(db, row.no)
                raise
            held = self._held[run] = Held(row.no, seq, progress)
        return Claimed(partial(self._let_go, run, held))

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        del wait  # it is not quick in any case
        with self._using() as tables:
            held = self._held.get(run)
            if held is None:
                raise unclaimed(run)
            if records:
                writing.append(tables.db, held, records, self._clock.wall)

    def header(self, run: RunId) -> RunHeader:
        with self._using() as tables:
            return tables.header(run)

    def summary(self, run: RunId) -> RunSummary:
        with self._using() as tables:
            return tables.summaries([tables.row_of(run)])[0]

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._using() as tables:
            return tables.summaries(tables.rows(flow, limit))

    def records(self, run: RunId, after: int = 0, limit: int | None = None) -> Iterator[Numbered]:
        with self._using() as tables:
            row = tables.row_of(run)
        return islice(numbered(self._using, row, after), limit)

    def version(self) -> int:
        with self._using() as tables:
            tables.db.execute("SELECT 1")  # what was notified comes with any answer
            return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        body = sealed(encode(letter))
        with self._using() as tables, tables.db.transaction():
            query = "INSERT INTO weft_letters (run, node, body) VALUES (%s, %s, %s)"
            tables.db.execute(query, (tables.row_of(run).no, node_of(letter), body))
            writing.changed(tables.db)

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        del wait
        with self._using() as tables:
            query = """WITH taken AS (UPDATE weft_letters SET taken = true
            WHERE run = %s AND NOT taken RETURNING no, body) SELECT body FROM taken ORDER BY no"""
            found = tables.db.execute(query, (tables.row_of(run).no,)).fetchall()
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
            tables, now = PostgresTables(db), self._clock.wall()
            gone = going(tables, now, keep=keep, older_than_s=older_than_s, runs=runs)
            return prune(tables, gone, max_bytes)

    def check(self) -> Sequence[str]:
        with faults(self._where), self._connected() as db:
            return list(PostgresTables(db).complaints())

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._held.clear()
            self._db.close()

    @property
    def _db(self) -> Connection:
        return self._tables.db

    def _let_go(self, run: RunId, held: Held) -> None:
        with self._lock:
            if self._held.get(run) is held:
                del self._held[run]
                with suppress(psycopg.Error):  # the lock ends with the connection
                    unlock(self._db, held.no)

    @contextmanager
    def _using(self) -> Iterator[PostgresTables]:
        with self._lock:
            if self._closed:
                raise closed(self._where)
            with faults(self._where):
                if self._db.closed:  # and with it every claim has ended
                    self._held.clear()
                    self._tables = self._listening()
                yield self._tables

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

    def _listening(self) -> PostgresTables:
        db = self._connected()
        db.add_notify_handler(self._heard)
        db.execute(f"LISTEN {CHANGED}")
        self._version += 1
        return PostgresTables(db)

    def _heard(self, _notified: psycopg.Notify) -> None:
        self._version += 1

    def _begun(self, db: Connection, header: RunHeader, body: bytes) -> int:
        query = """INSERT INTO weft_runs (id, flow, wall, header) VALUES (%s, %s, %s, %s)
        ON CONFLICT DO NOTHING RETURNING no"""
        no: int | None = one(db, query, header.run, header.flow, header.wall, body)
        if no is None:
            raise exists(self._where, header.run)
        return no

    def _take(self, tables: PostgresTables, run: RunId, no: int) -> None:
        if run in self._held or not lock(tables.db, no):
            raise busy(run, tables.holders().get(no, "another process"))
