"""Leases on runs: rows with the holder, the expiry and the fencing token of a run's only writer.

A lease survives lost connections and expires by the server's clock. Each claim gets a larger token;
a writer with an older one is refused in the transaction of its write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import uuid4

from weft.core.codec import WrittenLists
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import RunProgress
from weft.durability.journal.refusals import busy, taken_over
from weft.workflow.postgres.connections import Connection, PostgresPool, rows_of

LEASE_S: Final = 20.0
"""Seconds until the lease of a dead process expires."""
_BEATS: Final = 4


class PendingBatch(NamedTuple):
    """A batch that is being written: the number of its last record, and the progress after it."""

    seq: int
    body: bytes
    progress: RunProgress


@dataclass(slots=True)
class RunLease:
    """The right to write to a run. `seq` is the number of its last record.

    `unknown`: a batch that may or may not have been committed. `lock` is held by the writing
    thread. `lists`: those in the batches of this process, whose parts exist as long as the run.
    """

    run: RunId
    no: int
    token: int
    seq: int
    progress: RunProgress
    unknown: PendingBatch | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    lists: WrittenLists = field(default_factory=WrittenLists)


class Claimant(NamedTuple):
    """A process that claims a run. `owner` is unique, so that a repeated claim finds its own."""

    name: str
    seconds: float
    owner: str

    @classmethod
    def new(cls, name: str, seconds: float) -> Claimant:
        """The claimant of a new claim."""
        return cls(name, seconds, uuid4().hex)


def grant(db: Connection, no: int, who: Claimant) -> None:
    """Create the first lease of a run, in the transaction that creates the run."""
    query = """INSERT INTO weft_leases (run, owner, holder, expires)
    VALUES (%s, %s, %s, clock_timestamp() + make_interval(secs => %s))"""
    db.execute(query, (no, who.owner, who.name, who.seconds))


def reserve(db: Connection, no: int) -> None:
    """Create an expired lease of a run, in the transaction that creates the run."""
    query = (
        "INSERT INTO weft_leases (run, token, owner, holder, expires) VALUES (%s, 0, '', '', %s)"
    )
    db.execute(query, (no, "-infinity"))


def take(db: Connection, run: RunId, no: int, who: Claimant) -> tuple[int, int]:
    """Take the lease of a run: its token and its last record's number. Raises: `RunBusy`."""
    query = """UPDATE weft_leases SET token = token + (owner <> %(owner)s)::integer,
    owner = %(owner)s, holder = %(holder)s,
    expires = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE run = %(run)s AND (owner = %(owner)s OR expires <= clock_timestamp())
    RETURNING token, seq"""
    given = {"owner": who.owner, "holder": who.name, "seconds": who.seconds, "run": no}
    row = db.execute(query, given).fetchone()
    if row is None:
        raise refusal(db, run, no)
    token, seq = row
    return int(token), int(seq)


def refusal(db: Connection, run: RunId, no: int) -> StoreError:
    """The error for a run that cannot be claimed."""
    query = """SELECT holder, ceil(extract(epoch FROM expires - clock_timestamp()))::integer
    FROM weft_leases WHERE run = %s"""
    holder, left_s = (rows_of(db, query, (no,)) or [("another process", None)])[0]
    return busy(run, holder, left_s)


def advance(db: Connection, lease: RunLease, seq: int, seconds: float) -> bool:
    """Set a run's last record to `seq` and renew its lease, if both are as `lease` says.

    False where the last record is another one. Blocks other writers until the transaction ends.
    Raises: `StoreError` when another process has claimed the run.
    """
    query = """UPDATE weft_leases SET seq = %s,
    expires = clock_timestamp() + make_interval(secs => %s)
    WHERE run = %s AND token = %s AND seq = %s"""
    parameters = (seq, seconds, lease.no, lease.token, lease.seq)
    if db.execute(query, parameters).rowcount:
        return True
    last_seq(db, lease)
    return False


def last_seq(db: Connection, lease: RunLease) -> int:
    """The number of the last record, with all writers excluded.

    Raises: `StoreError` when another process has claimed the run.
    """
    query = "SELECT token, seq, holder FROM weft_leases WHERE run = %s FOR UPDATE"
    rows = rows_of(db, query, (lease.no,))
    if not rows or rows[0][0] != lease.token:
        raise taken_over(lease.run, rows[0][2] if rows else None)
    return int(rows[0][1])


def withdraw(lease: RunLease, db: Connection) -> bool:
    """Remove a run without records; False where it has some. Raises: as `last_seq`."""
    if last_seq(db, lease):
        return False
    db.execute("DELETE FROM weft_runs WHERE no = %s", (lease.no,))
    return True


def expire(db: Connection, lease: RunLease) -> bool:
    """Expire a lease now; False when another process has claimed the run."""
    query = "UPDATE weft_leases SET expires = '-infinity' WHERE run = %s AND token = %s"
    return db.execute(query, (lease.no, lease.token)).rowcount > 0


def forget(db: Connection, no: int) -> None:
    """Let no worker wait for the end of a lease that has expired; within a transaction."""
    db.execute("UPDATE weft_leases SET expires = '-infinity' WHERE run = %s", (no,))


def give_back(connections: PostgresPool, leases: Sequence[RunLease]) -> None:
    """Expire leases now. Raises: `StoreError`."""
    query = """UPDATE weft_leases SET expires = '-infinity'
    FROM unnest(%s::integer[], %s::bigint[]) AS mine (run, token)
    WHERE weft_leases.run = mine.run AND weft_leases.token = mine.token"""
    parameters = ([lease.no for lease in leases], [lease.token for lease in leases])
    connections.ask(query, parameters)


def renew(connections: PostgresPool, leases: Sequence[RunLease], seconds: float) -> None:
    """Extend leases to `seconds` from now, except lost ones. Raises: `StoreError`.

    Rows that a writer is renewing are skipped.
    """
    query = """UPDATE weft_leases SET expires = clock_timestamp() + make_interval(secs => %s)
    WHERE run IN (SELECT weft_leases.run FROM weft_leases
    JOIN unnest(%s::integer[], %s::bigint[]) AS mine (run, token) USING (run, token)
    FOR UPDATE OF weft_leases SKIP LOCKED)"""
    parameters = (seconds, [lease.no for lease in leases], [lease.token for lease in leases])
    connections.ask(query, parameters)


class Heartbeat:
    """Renews the leases that `leases` returns, in its own thread, until it is stopped.

    A failed beat is retried by the next one: an expired lease stays valid until another process
    claims the run.
    """

    def __init__(
        self, connections: PostgresPool, leases: Callable[[], Sequence[RunLease]], seconds: float
    ) -> None:
        self._connections = connections
        self._leases = leases
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it. Harmless when repeated."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="weft-leases", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop it soon. Harmless when repeated."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds / _BEATS):
            self._beat()

    def _beat(self) -> None:
        leases = self._leases()
        if not leases:
            return
        try:
            renew(self._connections, leases, self._seconds)
        except StoreError:
            return
