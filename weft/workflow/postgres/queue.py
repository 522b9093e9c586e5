"""The run queue in PostgreSQL: workers of many machines take runs, and are notified of changes.

Taking a run grants its lease in the same transaction. Rows that another worker is taking, or whose
lease a writer is renewing, are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, LiteralString

from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import Claim, Losses, RunHeader
from weft.core.ports.queue import (
    QueueEntry,
    QueueState,
    QueueTerms,
    RunSchedule,
    TakenRun,
    WorkerEntry,
)
from weft.durability.journal.refusals import HeldClaim
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
from weft.workflow.postgres import leases
from weft.workflow.postgres.connections import Connection, PostgresPool, T, rows_of
from weft.workflow.postgres.leases import Claimant, RunLease
from weft.workflow.postgres.notifications import NotificationListener
from weft.workflow.postgres.queue_moves import lock, notify
from weft.workflow.postgres.tables import OURS, PostgresTables

_ENTRY: Final[LiteralString] = """SELECT r.id, r.flow, r.wall, r.status, q.state, q.attempts,
q.reason, q.queue, q.version, q.priority, q.due, q.limit_key, q.at_most, q.max_attempts,
CASE WHEN l.expires > clock_timestamp() THEN l.holder ELSE '' END
FROM weft_queue q JOIN weft_runs r ON r.no = q.run JOIN weft_leases l ON l.run = q.run"""
_NOW: Final[LiteralString] = (
    "coalesce(%(now)s::double precision, extract(epoch FROM clock_timestamp())::double precision)"
)
_OPEN: Final[LiteralString] = """q.queue = ANY(%(queues)s) AND q.version = ANY(%(versions)s)"""
_LEFT: Final[LiteralString] = """UPDATE weft_queue SET state = CASE WHEN
EXISTS (SELECT FROM weft_asking WHERE run = %(run)s)
AND NOT EXISTS (SELECT FROM weft_letters WHERE run = %(run)s AND taken = '')
THEN 'asking' ELSE 'queued' END WHERE run = %(run)s AND state = 'running'"""

_GONE: Final[LiteralString] = """DELETE FROM weft_workers WHERE id IN (SELECT id FROM weft_workers
WHERE expires <= clock_timestamp() FOR UPDATE SKIP LOCKED)"""


@dataclass(frozen=True, slots=True)
class QueueHost:
    """What a journal lets its queue use; everything raises as the journal's methods do.

    pool      its connections
    claimant  this process, for a new claim
    begin     create a run with a lease; calls the function within its transaction
    add_run   insert a run with an expired lease, within a transaction; returns its number, or
              None where there is one of this id
    hold      keep the lease of a run renewed, until the claim is released
    """

    pool: Callable[[], PostgresPool]
    claimant: Callable[[], Claimant]
    begin: Callable[[RunHeader, Callable[[Connection, int], None]], RunLease]
    add_run: Callable[[Connection, RunHeader], int | None]
    hold: Callable[[RunLease], Claim]


class PostgresQueue:
    """Implements `RunQueue` over the tables of a journal."""

    def __init__(self, host: QueueHost) -> None:
        self._host = host

    def submit(self, header: RunHeader, terms: QueueTerms) -> bool:
        return self._transact(lambda db: self._submitted(db, header, terms))

    def begin(self, header: RunHeader, terms: QueueTerms) -> Claim:
        def insert(db: Connection, no: int) -> None:
            _insert(db, no, header, terms, "running", 1)

        return self._held(self._host.begin(header, insert))

    def take(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> TakenRun | None:
        who, tries = self._host.claimant(), 0
        given = {"queues": list(queues), "versions": list(versions), "now": now_s}

        def write(db: Connection) -> tuple[RunLease, int, str] | None:
            nonlocal tries
            tries += 1
            chosen = _taken_before(db, who) if tries > 1 else None
            if chosen is None:
                chosen = _chosen(db, given)
            if chosen is None:
                return None
            token, seq = leases.take(db, chosen.run, chosen.no, who)
            attempts = chosen.attempts + (chosen.state == "running" or not chosen.attempts)
            query = "UPDATE weft_queue SET state = 'running', attempts = %s WHERE run = %s"
            db.execute(query, (attempts, chosen.no))
            db.execute("UPDATE weft_letters SET taken = '' WHERE run = %s", (chosen.no,))
            tables = PostgresTables.within(db)
            progress = tables.progress_of(tables.row_of(chosen.run))
            return RunLease(chosen.run, chosen.no, token, seq, progress), attempts, chosen.version

        found = self._transact(write)
        if found is None:
            return None
        lease, attempts, version = found
        return TakenRun(lease.run, version, self._held(lease), attempts, Losses())

    def wait_s(
        self, queues: Sequence[str], versions: Sequence[str], now_s: float | None = None
    ) -> float | None:
        query: LiteralString = f"""SELECT least(
        (SELECT min(due) FROM weft_queue q WHERE {_OPEN} AND state = 'queued' AND due > {_NOW}),
        (SELECT min(next) FROM weft_schedules)) - {_NOW},
        (SELECT min(extract(epoch FROM expires - clock_timestamp()))::double precision
        FROM weft_queue q JOIN weft_leases USING (run) WHERE {_OPEN} AND (state = 'running'
        OR (state = 'queued' AND due <= {_NOW})) AND expires > '-infinity')"""  # noqa: S608
        given = {"queues": list(queues), "versions": list(versions), "now": now_s}
        ((due_s, lapse_s),) = self._transact(lambda db: rows_of(db, query, given))
        waits = [float(wait_s) for wait_s in (due_s, lapse_s) if wait_s is not None]
        return max(0.0, min(waits)) if waits else None

    def requeue(self, run: RunId) -> None:
        query: LiteralString = """UPDATE weft_queue SET state = 'queued', attempts = 0, reason = '',
        due = 0 WHERE run = %s AND (state IN ('asking', 'stopped') OR (state = 'ended' AND EXISTS
        (SELECT FROM weft_runs WHERE no = run AND status <> 'succeeded')))"""

        def write(db: Connection) -> None:
            no = PostgresTables.within(db).row_of(run).no
            if db.execute(query, (no,)).rowcount:
                notify(db, run)
            elif not rows_of(db, "SELECT FROM weft_queue WHERE run = %s", (no,)):
                raise not_queued(run)

        self._transact(write)

    def stop(self, run: RunId, reason: str) -> None:
        def write(db: Connection) -> None:
            query = "UPDATE weft_queue SET state = 'stopped', reason = %s WHERE run = %s"
            db.execute(query, (reason, PostgresTables.within(db).row_of(run).no))
            notify(db, run)

        self._transact(write)

    def entry(self, run: RunId) -> QueueEntry | None:
        def read(db: Connection) -> QueueEntry | None:
            no = PostgresTables.within(db).row_of(run).no
            rows = rows_of(db, _ENTRY + " WHERE q.run = %s", (no,))
            return entry_in(rows[0][:-1], rows[0][-1]) if rows else None

        return self._transact(read)

    def entries(
        self, states: Sequence[QueueState] = (), limit: int | None = None
    ) -> Sequence[QueueEntry]:
        query = (
            _ENTRY
            + """ WHERE (cardinality(%s::text[]) = 0 OR q.state = ANY(%s))
        ORDER BY q.priority DESC, q.run LIMIT %s"""
        )
        rows = self._host.pool().ask(query, (list(states), list(states), limit))
        return [entry_in(row[:-1], row[-1]) for row in rows]

    def listen(self, wake: Callable[[], object]) -> NotificationListener:
        return NotificationListener(self._host.pool(), wake)

    def put_schedule(self, schedule: RunSchedule) -> None:
        query: LiteralString = f"""INSERT INTO weft_schedules
        (name, cron, zone, catch_up, next, header, {TERMS})
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"""  # noqa: S608 - constant
        row = (
            *(schedule.name, schedule.cron, schedule.zone, schedule.catch_up),
            *(schedule.next_s, stored_header(schedule.header)),
            *terms_row(schedule.terms, schedule.header.flow),
        )

        def write(db: Connection) -> None:
            db.execute("DELETE FROM weft_schedules WHERE name = %s", (schedule.name,))
            db.execute(query, row)
            notify(db, "")

        self._transact(write)

    def remove_schedule(self, name: str) -> bool:
        query = "DELETE FROM weft_schedules WHERE name = %s"
        return self._transact(lambda db: db.execute(query, (name,)).rowcount > 0)

    def schedules(self) -> Sequence[RunSchedule]:
        query: LiteralString = f"""SELECT name, cron, zone, catch_up, next, header, {TERMS}
        FROM weft_schedules ORDER BY name COLLATE "C" """  # noqa: S608 - a constant
        return [schedule_in(row) for row in self._host.pool().ask(query)]

    def fire(self, schedule: RunSchedule, next_s: float, run: RunId | None, due_s: float) -> bool:
        query = (
            """UPDATE weft_schedules SET next = %s WHERE name = %s AND next = %s AND cron = %s"""
        )
        given = (next_s, schedule.name, schedule.next_s, schedule.cron)

        def write(db: Connection) -> bool:
            if not db.execute(query, given).rowcount:
                return False
            if run is not None:
                terms = replace(schedule.terms, due_s=due_s)
                self._submitted(db, replace(schedule.header, run=run), terms)
            return True

        return self._transact(write)

    def put_worker(self, worker: WorkerEntry, lease_s: float) -> None:
        query = """INSERT INTO weft_workers VALUES (%(id)s,
        clock_timestamp() + make_interval(secs => %(lease_s)s), clock_timestamp(), %(body)s)
        ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, beat = excluded.beat,
        body = excluded.body"""
        given = {"id": worker.id, "lease_s": lease_s, "body": worker_body(worker)}

        def write(db: Connection) -> None:
            db.execute(query, given)
            db.execute(_GONE)

        self._transact(write)

    def remove_worker(self, worker: str) -> None:
        self._host.pool().ask("DELETE FROM weft_workers WHERE id = %s", (worker,))

    def workers(self) -> Sequence[WorkerEntry]:
        query = """SELECT id, body, extract(epoch FROM beat)::double precision FROM weft_workers
        WHERE expires > clock_timestamp() ORDER BY id COLLATE "C" """
        return [worker_in(row) for row in self._host.pool().ask(query)]

    def _transact(self, work: Callable[[Connection], T]) -> T:
        return self._host.pool().transact(work)

    def _submitted(self, db: Connection, header: RunHeader, terms: QueueTerms) -> bool:
        no = self._host.add_run(db, header)
        if no is None:
            return False
        _insert(db, no, header, terms, "queued", 0)
        notify(db, header.run)
        return True

    def _held(self, lease: RunLease) -> Claim:
        return HeldClaim(partial(self._leave, lease, self._host.hold(lease)))

    def _leave(self, lease: RunLease, claim: Claim) -> None:
        """Move a run on that this process stops executing, and release it, in one transaction.

        Where the server cannot be reached, the lease expires.
        """

        def write(db: Connection) -> None:
            lock(db, lease.no)
            if leases.expire(db, lease) and db.execute(_LEFT, {"run": lease.no}).rowcount:
                notify(db, lease.run)

        with suppress(StoreError):
            self._transact(write)
        claim.release()


def _chosen(db: Connection, given: Mapping[str, object]) -> QueueCandidate | None:
    """Lock the first run that may be taken, and its lease; stop those without an attempt left."""
    query: LiteralString = f"""SELECT q.run, r.id, q.state, q.attempts, q.limit_key, q.at_most,
    q.max_attempts, q.version FROM weft_queue q JOIN weft_leases l ON l.run = q.run
    JOIN weft_runs r ON r.no = q.run
    WHERE {_OPEN} AND (q.state = 'running' OR (q.state = 'queued' AND q.due <= {_NOW}))
    AND l.expires <= clock_timestamp() AND (q.state = 'running' OR (q.limit_key <> ALL(%(full)s)
    AND (q.at_most IS NULL OR q.at_most > (SELECT count(*) FROM weft_queue o
    WHERE o.limit_key = q.limit_key AND o.state = 'running'))))
    ORDER BY q.priority DESC, q.run LIMIT 1
    FOR UPDATE OF q, l SKIP LOCKED"""  # noqa: S608 - constants
    full: list[str] = []
    while rows := rows_of(db, query, {**given, "full": full}):
        one = QueueCandidate(*rows[0])
        if one.state == "running":
            if one.attempts < one.max_attempts:
                return one
            query_stop = "UPDATE weft_queue SET state = 'stopped', reason = %s WHERE run = %s"
            db.execute(query_stop, (worn_out(one.attempts), one.no))
            leases.forget(db, one.no)
        elif one.limit is None or _has_room(db, one.key, one.limit):
            return one
        else:
            full.append(one.key)
    return None


def _has_room(db: Connection, key: str, limit: int) -> bool:
    """Whether a run of a limit may start; others that ask wait for the end of this transaction."""
    db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (OURS, key))
    query = "SELECT count(*) FROM weft_queue WHERE limit_key = %s AND state = 'running'"
    ((running,),) = rows_of(db, query, (key,))
    return int(running) < limit


def _taken_before(db: Connection, who: Claimant) -> QueueCandidate | None:
    """The run that an attempt of the same claim took, which committed unseen."""
    query = """SELECT q.run, r.id, 'queued', q.attempts, '', NULL, q.max_attempts, q.version
    FROM weft_leases l JOIN weft_queue q ON q.run = l.run JOIN weft_runs r ON r.no = q.run
    WHERE l.owner = %s"""
    rows = rows_of(db, query, (who.owner,))
    return QueueCandidate(*rows[0]) if rows else None


def _insert(
    db: Connection,
    no: int,
    header: RunHeader,
    terms: QueueTerms,
    state: QueueState,
    attempts: int,
) -> None:
    query: LiteralString = f"""INSERT INTO weft_queue (run, state, attempts, reason, {TERMS})
    VALUES (%s, %s, %s, '', %s, %s, %s, %s, %s, %s, %s)"""  # noqa: S608 - a constant
    db.execute(query, (no, state, attempts, *terms_row(terms, header.flow)))
