"""A journal in a PostgreSQL database, for many machines; each run has one writing process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Final, LiteralString
from uuid import uuid4

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
from weft.durability.journal.refusals import HeldClaim, busy, closed, exists, unclaimed
from weft.durability.journal.rows import Blobs, letter_in, sealed
from weft.durability.journal.tables import iter_records
from weft.workflow.postgres import conversations, leases, writes
from weft.workflow.postgres.connections import Connection, PostgresPool, Rows, rows_of
from weft.workflow.postgres.leases import LEASE_S, Claimant, Heartbeat, RunLease
from weft.workflow.postgres.queue import PostgresQueue, QueueHost
from weft.workflow.postgres.shared_read import SharedRead
from weft.workflow.postgres.tables import MIGRATIONS, PostgresTables, one, prepare, prune

_ADD_RUN: Final[LiteralString] = """INSERT INTO weft_runs (id, flow, wall, header)
VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING no"""
RETRY_S: Final = 10.0
"""Seconds for which a method retries to reach the server before it raises."""


class PostgresJournal:
    """Implements `Journal` in the database that `dsn` names (`postgresql://...`).

    Missing tables, `weft_...`, are created. A claim is a lease of `lease_s` seconds, which this
    process renews while it lives: it survives lost connections and restarts of the server. No state
    is kept in a session, so the address may be that of a pooler. While the server is unreachable,
    methods retry for `retry_s` seconds, then raise a retryable `StoreError`. Raises: `StoreError`
    when it cannot be reached now.
    """

    quick = False

    def __init__(
        self,
        dsn: str,
        *,
        clock: Clock | None = None,
        lease_s: float = LEASE_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._clock = clock or SystemClock()
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._leases: dict[RunId, RunLease] = {}
        self._looks: dict[RunId, str] = {}
        self._snapshot = ""
        self._read_snapshot = SharedRead(self._current_snapshot)
        self._version = 0
        self._closed = False
        self._connections = PostgresPool(dsn, retry_s=retry_s)
        self._where = self._connections.where
        self._connections.transact(partial(prepare, where=self._where, migrations=MIGRATIONS))
        self._tables = PostgresTables(self._ask)
        self._heartbeat = Heartbeat(self._connections, self._held, lease_s)
        host = QueueHost(self._open, self._claimant, self._begin, self._add_run, self._hold)
        self._queue = PostgresQueue(host)

    @property
    def queue(self) -> PostgresQueue:
        """See `QueueingJournal`."""
        return self._queue

    def begin(self, header: RunHeader) -> Claim:
        return self._hold(self._begin(header, lambda _, __: None))

    def _begin(self, header: RunHeader, queued: Callable[[Connection, int], None]) -> RunLease:
        """Create a run; `queued` is called with its number, in the transaction."""
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        who = self._claimant()

        def write(db: Connection) -> int:
            no, is_new = self._begun(db, header, body, who)
            if is_new:
                queued(db, no)
            writes.keep(db, blobs.bodies)
            return no

        no = self._open().transact(write)
        return RunLease(header.run, no, 1, 0, RunProgress())

    def _add_run(self, db: Connection, header: RunHeader) -> int | None:
        """Create an unclaimed run, in a transaction; None when there is one of its id."""
        blobs = Blobs()
        body = sealed(encode(header, blobs.keep))
        no: int | None = one(db, _ADD_RUN, header.run, header.flow, header.wall, body)
        if no is not None:
            leases.reserve(db, no)
            writes.keep(db, blobs.bodies)
        return no

    def _claimant(self) -> Claimant:
        return Claimant.new(self._connections.client, self._lease_s)

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        query = "SELECT id FROM weft_runs WHERE id = ANY(%s)"
        rows = self._open().transact(lambda db: db.execute(query, (list(runs),)).fetchall())
        return frozenset(RunId(run) for (run,) in rows)

    def claim(self, run: RunId) -> Claim:
        if run in self._leases:  # even if the lease has expired meanwhile
            raise busy(run, self._connections.client)
        who = self._claimant()

        def write(db: Connection) -> RunLease:
            tables = PostgresTables.within(db)
            no = tables.row_of(run).no
            token, seq = leases.take(db, run, no, who)
            db.execute("UPDATE weft_letters SET taken = '' WHERE run = %s", (no,))
            return RunLease(run, no, token, seq, tables.progress_of(tables.row_of(run)))

        return self._hold(self._open().transact(write))

    def withdraw(self, run: RunId) -> bool:
        connections, lease = self._open(), self._leases.get(run)
        if lease is None:
            raise unclaimed(run)
        if lease.seq or not connections.transact(partial(leases.withdraw, lease)):
            return False
        with self._lock:
            self._leases.pop(run, None)
        return True

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        del wait  # never quick
        connections, lease = self._open(), self._leases.get(run)
        if lease is None:
            raise unclaimed(run)
        writes.append(connections, lease, records, self._clock.wall, self._lease_s)

    def header(self, run: RunId) -> RunHeader:
        return self._tables.header(run)

    def summary(self, run: RunId) -> RunSummary:
        return self._tables.summaries([self._tables.row_of(run)])[0]

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        return self._tables.summaries(self._tables.rows(flow, limit))

    def records(
        self, run: RunId, after: int = 0, limit: int | None = None
    ) -> Iterator[NumberedRecord]:
        row = self._tables.row_of(run)
        return islice(iter_records(self._using, row, after, self._where), limit)

    def losses(self, run: RunId) -> Losses:
        self._tables.row_of(run)
        return Losses()  # the server syncs what it commits

    def lost_runs(self) -> Sequence[LostRun]:
        return ()

    def salvage(self, run: RunId) -> Salvage:
        return self._tables.salvage(self._tables.row_of(run))

    def version(self) -> int:
        snapshot = self._read_snapshot()
        with self._lock:
            self._version += snapshot != self._snapshot
            self._snapshot = snapshot
            return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        writes.send_signal(self._open(), self._tables.row_of(run).no, letter)

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        del wait
        lease = self._leases.get(run)
        no = self._tables.row_of(run).no if lease is None else lease.no
        with self._lock:  # a failed attempt may have taken some: the next one has its name
            look = self._looks.setdefault(run, uuid4().hex)
        signals = writes.take_signals(self._open(), no, lease, look)
        with self._lock:
            self._looks.pop(run, None)
        return signals

    def pending_letters(self, run: RunId) -> Sequence[Letter]:
        query = "SELECT body FROM weft_letters WHERE run = %s ORDER BY no"
        return [letter_in(body) for (body,) in self._ask(query, (self._tables.row_of(run).no,))]

    def change_rate(self, key: str, change: RateChange[T], now_s: float | None = None) -> T:
        """See `RateStore`."""

        def write(db: Connection) -> T:
            db.execute("INSERT INTO weft_rates VALUES (%s, '') ON CONFLICT DO NOTHING", (key,))
            query = "SELECT body FROM weft_rates WHERE key = %s FOR UPDATE"
            ((body,),) = rows_of(db, query, (key,))  # the time is that after the wait for the row
            (server_s,) = rows_of(db, "SELECT extract(epoch FROM clock_timestamp())")[0]
            text, result = change(body, float(server_s) if now_s is None else now_s)
            db.execute("UPDATE weft_rates SET body = %s WHERE key = %s", (text, key))
            return result

        return self._open().transact(write)

    def threads(self) -> Sequence[ThreadSummary]:
        """See `ConversationStore`."""
        query: LiteralString = """SELECT thread, count(*), coalesce(max(covers), 0)
        FROM weft_messages LEFT JOIN weft_summaries USING (thread)
        GROUP BY thread ORDER BY thread COLLATE "C" """
        return [ThreadSummary(*row) for row in self._ask(query)]

    def read_thread(self, thread: str) -> StoredThread:
        """See `ConversationStore`."""
        return self._open().transact(lambda db: conversations.read_thread(db, thread))

    def append_to_thread(
        self, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None = None
    ) -> bool:
        """See `ConversationStore`."""
        append = conversations.append_to_thread
        return self._open().transact(lambda db: append(db, thread, key, messages, summary))

    def delete_thread(self, thread: str) -> bool:
        """See `ConversationStore`."""
        return self._open().transact(lambda db: conversations.delete_thread(db, thread))

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> PruneResult:
        connections, now = self._open(), self._clock.wall()
        gone = going(self._tables, now, keep=keep, older_than_s=older_than_s, runs=runs)
        return prune(connections, gone, max_bytes)

    def check(self) -> Sequence[str]:
        return list(self._tables.complaints())

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            leases_left = list(self._leases.values())
            self._leases.clear()
        self._heartbeat.stop()
        self._end(leases_left)
        self._connections.close()

    def _open(self) -> PostgresPool:
        if self._closed:
            raise closed(self._where)
        return self._connections

    def _ask(self, query: LiteralString, parameters: Sequence[object] = ()) -> Rows:
        return self._open().ask(query, parameters)

    @contextmanager
    def _using(self) -> Iterator[PostgresTables]:
        yield self._tables

    def _current_snapshot(self) -> str:
        """The snapshot of the server's transactions: it changes whenever one ends, anywhere."""
        ((snapshot,),) = self._ask("SELECT pg_current_snapshot()::text")
        return str(snapshot)

    def _held(self) -> list[RunLease]:
        with self._lock:
            return list(self._leases.values())

    def _hold(self, lease: RunLease) -> Claim:
        with self._lock:
            self._leases[lease.run] = lease
        self._heartbeat.start()
        return HeldClaim(partial(self._release, lease))

    def _release(self, lease: RunLease) -> None:
        with self._lock:
            if self._leases.get(lease.run) is not lease:
                return
            del self._leases[lease.run]
        self._end([lease])

    def _end(self, ended: Sequence[RunLease]) -> None:
        if ended:
            with suppress(StoreError):  # then they expire
                leases.give_back(self._connections, ended)

    def _begun(
        self, db: Connection, header: RunHeader, body: bytes, who: Claimant
    ) -> tuple[int, bool]:
        """The number of a run, and whether this attempt created it."""
        no: int | None = one(db, _ADD_RUN, header.run, header.flow, header.wall, body)
        if no is not None:
            leases.grant(db, no, who)
            return no, True
        query = """SELECT run FROM weft_leases JOIN weft_runs ON no = run
        WHERE id = %s AND owner = %s"""
        no = one(db, query, header.run, who.owner)  # of an attempt that committed unseen
        if no is None:
            raise exists(self._where, header.run)
        return no, False
