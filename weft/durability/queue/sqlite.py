"""The run queue in a journal's SQLite file, for the processes of one machine.

The lock that is a run's claim shows whether its worker lives. Workers poll: a look is one read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.ids import RunId
from weft.core.ports.clock import Clock
from weft.core.ports.journal import Claim, RunHeader
from weft.core.ports.queue import (
    QueueEntry,
    QueueState,
    QueueTerms,
    RunSchedule,
    TakenRun,
    WorkerEntry,
)
from weft.durability.journal.refusals import HeldClaim
from weft.durability.journal.sqlite.batch_writer import transaction
from weft.durability.journal.sqlite.locks import FileLock, is_locked
from weft.durability.journal.sqlite.once_log import losses
from weft.durability.journal.sqlite.tables import SqliteTables
from weft.durability.queue.rows import (
    TERMS,
    QueueCandidate,
    entry_in,
    not_queued,
    schedule_in,
    stored_header,
    terms_row,
    worker_body,
    worker_in,
    worn_out,
)

POLL_S: Final = 0.25
"""Seconds between two looks of a worker that has nothing to do."""
_ENTRY = f"""SELECT id, flow, wall, status, state, attempts, reason, {TERMS}, no
FROM queue JOIN runs ON no = run"""  # noqa: S608 - constants
_ORDER = "priority DESC, run"


@dataclass(frozen=True, slots=True)
class QueuedTables:
    """What a journal lets its queue use; everything raises as the journal's methods do.

    writing, using   its tables
    add_run          insert an unclaimed run, within a transaction; returns its number
    begin            as `Journal.begin`; calls the function within the run's transaction
    lock             take the lock on a run; raises `RunBusy`
    claim            claim a run under its lock
    """

    writing: Callable[[], AbstractContextManager[SqliteTables]]
    using: Callable[[], AbstractContextManager[SqliteTables]]
    add_run: Callable[[RunHeader], int]
    begin: Callable[[RunHeader, Callable[[int], None]], Claim]
    lock: Callable[[RunId, int], FileLock]
    claim: Callable[[RunId, FileLock], Claim]


class PollingListener:
    """Implements `QueueListener` where nothing notifies."""

    poll_s = POLL_S

    def close(self) -> None:
        pass


class SqliteQueue:
    """Implements `RunQueue` over the tables of a journal."""

    def __init__(self, tables: QueuedTables, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock

    def submit(self, header: RunHeader, terms: QueueTerms) -> bool:
        with self._tables.writing() as tables, transaction(tables.db):
            return self._submitted(tables.db, header, terms)

    def begin(self, header: RunHeader, terms: QueueTerms) -> Claim:
        def insert(no: int) -> None:
            self._insert(no, header, terms, "running", 1)

        return self._leaving(header.run, self._tables.begin(header, insert))

    def take(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> TakenRun | None:
        now_s = self._now_s if now_s is None else now_s
        with self._tables.using() as tables:
            if not list(self._candidates(tables, queues, versions, now_s)):
                return None  # usually; saves a write
        with self._tables.writing() as tables:
            with transaction(tables.db):
                chosen = self._chosen(tables, queues, versions, now_s)
                if chosen is None:
                    return None
                try:
                    lock = self._tables.lock(chosen.run, chosen.no)
                except RunBusy:  # it has just been claimed by hand
                    return None
                attempts = chosen.attempts + (chosen.state == "running" or not chosen.attempts)
                query = "UPDATE queue SET state = 'running', attempts = ? WHERE run = ?"
                try:
                    tables.db.execute(query, (attempts, chosen.no))
                except BaseException:
                    lock.release()
                    raise
            missing = losses(tables, tables.row_of(chosen.run))
            claim = self._tables.claim(chosen.run, lock)  # its failure releases the lock
        left = self._leaving(chosen.run, claim)
        return TakenRun(chosen.run, chosen.version, left, attempts, missing)

    def wait_s(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> float | None:
        del queues, versions
        now_s = self._now_s if now_s is None else now_s
        query = """SELECT min(due) FROM (SELECT min(due) AS due FROM queue
        WHERE state = 'queued' AND due > ? UNION ALL SELECT min(next) FROM schedules)"""
        with self._tables.using() as tables:
            (due_s,) = tables.db.execute(query, (now_s,)).fetchone()
        return None if due_s is None else max(0.0, due_s - now_s)

    def requeue(self, run: RunId) -> None:
        query = """UPDATE queue SET state = 'queued', attempts = 0, reason = '', due = 0
        WHERE run = ? AND (state IN ('asking', 'stopped') OR (state = 'ended' AND EXISTS
        (SELECT 1 FROM runs WHERE no = run AND status <> 'succeeded')))"""
        with self._tables.writing() as tables:
            no = tables.row_of(run).no
            if not tables.db.execute(query, (no,)).rowcount and not _has(tables.db, no):
                raise not_queued(run)

    def stop(self, run: RunId, reason: str) -> None:
        query = "UPDATE queue SET state = 'stopped', reason = ? WHERE run = ?"
        with self._tables.writing() as tables:
            tables.db.execute(query, (reason, tables.row_of(run).no))

    def entry(self, run: RunId) -> QueueEntry | None:
        with self._tables.using() as tables:
            row = tables.row_of(run)
            found = tables.db.execute(f"{_ENTRY} WHERE run = ?", (row.no,)).fetchone()
            return None if found is None else self._entry(tables, found)

    def entries(
        self, states: Sequence[QueueState] = (), limit: int | None = None
    ) -> Sequence[QueueEntry]:
        marks = ",".join("?" * len(states))
        where = f"WHERE state IN ({marks})" if states else ""
        query = f"{_ENTRY} {where} ORDER BY {_ORDER} LIMIT ?"
        with self._tables.using() as tables:
            rows = tables.db.execute(query, (*states, -1 if limit is None else limit)).fetchall()
            return [self._entry(tables, row) for row in rows]

    def listen(self, wake: Callable[[], object]) -> PollingListener:
        del wake
        return PollingListener()

    def put_schedule(self, schedule: RunSchedule) -> None:
        query = "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        with self._tables.writing() as tables:
            tables.db.execute(
                query,
                (
                    *(schedule.name, schedule.cron, schedule.zone, schedule.catch_up),
                    *(schedule.next_s, stored_header(schedule.header)),
                    *terms_row(schedule.terms, schedule.header.flow),
                ),
            )

    def remove_schedule(self, name: str) -> bool:
        with self._tables.writing() as tables:
            removed = tables.db.execute("DELETE FROM schedules WHERE name = ?", (name,))
            return removed.rowcount > 0

    def schedules(self) -> Sequence[RunSchedule]:
        with self._tables.using() as tables:
            rows = tables.db.execute("SELECT * FROM schedules ORDER BY name").fetchall()
        return [schedule_in(row) for row in rows]

    def fire(self, schedule: RunSchedule, next_s: float, run: RunId | None, due_s: float) -> bool:
        query = "UPDATE schedules SET next = ? WHERE name = ? AND next = ? AND cron = ?"
        given = (next_s, schedule.name, schedule.next_s, schedule.cron)
        with self._tables.writing() as tables, transaction(tables.db):
            if not tables.db.execute(query, given).rowcount:
                return False
            if run is not None:
                terms = replace(schedule.terms, due_s=due_s)
                self._submitted(tables.db, replace(schedule.header, run=run), terms)
            return True

    def put_worker(self, worker: WorkerEntry, lease_s: float) -> None:
        now_s = self._now_s
        row = (worker.id, now_s + lease_s, now_s, worker_body(worker))
        with self._tables.writing() as tables, transaction(tables.db):
            tables.db.execute("DELETE FROM workers WHERE expires <= ?", (now_s,))
            tables.db.execute("INSERT OR REPLACE INTO workers VALUES (?, ?, ?, ?)", row)

    def remove_worker(self, worker: str) -> None:
        with self._tables.writing() as tables:
            tables.db.execute("DELETE FROM workers WHERE id = ?", (worker,))

    def workers(self) -> Sequence[WorkerEntry]:
        query = "SELECT id, body, beat FROM workers WHERE expires > ? ORDER BY id"
        with self._tables.using() as tables:
            return [worker_in(row) for row in tables.db.execute(query, (self._now_s,))]

    @property
    def _now_s(self) -> float:
        return self._clock.wall().timestamp()

    def _submitted(self, db: sqlite3.Connection, header: RunHeader, terms: QueueTerms) -> bool:
        try:
            no = self._tables.add_run(header)
        except RunExists:
            return False
        _insert(db, no, header, terms, "queued", 0)
        return True

    def _insert(
        self, no: int, header: RunHeader, terms: QueueTerms, state: QueueState, attempts: int
    ) -> None:
        with self._tables.using() as tables:
            _insert(tables.db, no, header, terms, state, attempts)

    def _candidates(
        self, tables: SqliteTables, queues: Sequence[str], versions: Sequence[str], now_s: float
    ) -> Iterator[QueueCandidate]:
        """The runs that may be taken, best first, without a look at limits."""
        query = f"""SELECT no, id, state, attempts, limit_key, at_most, max_attempts,
        version FROM queue JOIN runs ON no = run
        WHERE (state = 'running' OR (state = 'queued' AND due <= ?))
        AND queue IN (SELECT value FROM json_each(?))
        AND version IN (SELECT value FROM json_each(?)) ORDER BY {_ORDER}"""  # noqa: S608 - constant
        given = (now_s, json.dumps(list(queues)), json.dumps(list(versions)))
        for row in tables.db.execute(query, given):
            candidate = QueueCandidate(*row)
            if not is_locked(tables.claim_file(candidate.no)):
                yield candidate

    def _chosen(
        self, tables: SqliteTables, queues: Sequence[str], versions: Sequence[str], now_s: float
    ) -> QueueCandidate | None:
        """The first candidate that its limits allow; stops those that have no attempt left."""
        for one in list(self._candidates(tables, queues, versions, now_s)):
            if one.state == "running" and one.attempts >= one.max_attempts:
                query = "UPDATE queue SET state = 'stopped', reason = ? WHERE run = ?"
                tables.db.execute(query, (worn_out(one.attempts), one.no))
            elif one.state == "running" or one.limit is None:
                return one
            else:
                query = "SELECT count(*) FROM queue WHERE limit_key = ? AND state = 'running'"
                (running,) = tables.db.execute(query, (one.key,)).fetchone()
                if running < one.limit:
                    return one
        return None

    def _leaving(self, run: RunId, claim: Claim) -> Claim:
        return HeldClaim(partial(self._leave, run, claim))

    def _leave(self, run: RunId, claim: Claim) -> None:
        """Move a run on that this process stops executing, and release it."""
        query = """UPDATE queue SET state = CASE WHEN
        EXISTS (SELECT 1 FROM asking WHERE asking.run = queue.run)
        AND NOT EXISTS (SELECT 1 FROM letters WHERE letters.run = queue.run AND NOT taken)
        THEN 'asking' ELSE 'queued' END
        WHERE state = 'running' AND run = (SELECT no FROM runs WHERE id = ?)"""
        # Where that fails, the run counts as abandoned as soon as its lock ends.
        with suppress(StoreError), self._tables.writing() as tables:
            tables.db.execute(query, (run,))
        claim.release()

    def _entry(self, tables: SqliteTables, row: Sequence[object]) -> QueueEntry:
        *values, no = row
        assert isinstance(no, int)
        holders = tables.holders([tables.row_of(RunId(str(values[0])))])
        return entry_in(values, holders.get(no, ""))


def _insert(
    db: sqlite3.Connection,
    no: int,
    header: RunHeader,
    terms: QueueTerms,
    state: QueueState,
    attempts: int,
) -> None:
    row = (no, state, attempts, "", *terms_row(terms, header.flow))
    db.execute("INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _has(db: sqlite3.Connection, no: int) -> bool:
    return db.execute("SELECT 1 FROM queue WHERE run = ?", (no,)).fetchone() is not None
