"""Leases on runs: rows that say who may write, until when, and under which fencing token.

A lease outlives a connection and ends by the server's clock. Each claim gets a larger token; who
has an older one is refused in the very transaction in which it writes.
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
"""Seconds after which a run whose process died is free."""
_BEATS: Final = 4


class PendingBatch(NamedTuple):
    """Records on their way into the journal: the number of the last one, and how the run stands."""

    seq: int
    body: bytes
    progress: RunProgress


@dataclass(slots=True)
class RunLease:
    """The right to write to a run. `seq` is the number of its last record.

    `unknown`: a batch of which nobody can say yet whether it was committed. `lock` is held by the
    thread that writes. `lists`: those in the batches of this process, whose parts stay as long as
    the run does.
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
    """Who claims a run. `owner` is different in each claim: a repeated claim finds its own."""

    name: str
    seconds: float
    owner: str

    @classmethod
    def new(cls, name: str, seconds: float) -> Claimant:
        """One for a claim that begins now."""
        return cls(name, seconds, uuid4().hex)


def grant(db: Connection, no: int, who: Claimant) -> None:
    """Give the first lease of a run that was made in this transaction."""
    query = """INSERT INTO weft_leases (run, owner, holder, expires)
    VALUES (%s, %s, %s, clock_timestamp() + make_interval(secs => %s))"""
    db.execute(query, (no, who.owner, who.name, who.seconds))


def take(db: Connection, run: RunId, no: int, who: Claimant) -> tuple[int, int]:
    """Take the lease of a run; its token, and the number of the last record. Raises: `RunBusy`."""
    query = """UPDATE weft_leases SET token = token + (owner <> %(owner)s)::integer,
    owner = %(owner)s, holder = %(holder)s,
    expires = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE run = %(run)s AND (owner = %(owner)s OR expires <= clock_timestamp())
    RETURNING token, seq"""
    given = {"owner": who.owner, "holder": who.name, "seconds": who.seconds, "run": no}
    found = db.execute(query, given).fetchone()
    if found is None:
        raise refusal(db, run, no)
    token, seq = found
    return int(token), int(seq)


def refusal(db: Connection, run: RunId, no: int) -> StoreError:
    """Why a run cannot be claimed."""
    query = """SELECT holder, ceil(extract(epoch FROM expires - clock_timestamp()))::integer
    FROM weft_leases WHERE run = %s"""
    holder, left_s = (rows_of(db, query, (no,)) or [("another process", None)])[0]
    return busy(run, holder, left_s)


def advance(db: Connection, lease: RunLease, seq: int, seconds: float) -> bool:
    """Move a run's last record to `seq` and renew its lease, if both are where `lease` says.

    False where its last record is another one. No other writer comes in until the transaction ends.
    Raises: `StoreError` when another process has taken the run.
    """
    query = """UPDATE weft_leases SET seq = %s,
    expires = clock_timestamp() + make_interval(secs => %s)
    WHERE run = %s AND token = %s AND seq = %s"""
    given = (seq, seconds, lease.no, lease.token, lease.seq)
    if db.execute(query, given).rowcount:
        return True
    last_seq(db, lease)
    return False


def last_seq(db: Connection, lease: RunLease) -> int:
    """The number of the last record, once nobody is writing any more.

    Raises: `StoreError` when another process has taken the run.
    """
    query = "SELECT token, seq, holder FROM weft_leases WHERE run = %s FOR UPDATE"
    found = rows_of(db, query, (lease.no,))
    if not found or found[0][0] != lease.token:
        raise taken_over(lease.run, found[0][2] if found else None)
    return int(found[0][1])


def give_back(connections: PostgresPool, leases: Sequence[RunLease]) -> None:
    """End leases now. Raises: `StoreError`."""
    query = """UPDATE weft_leases SET expires = '-infinity'
    FROM unnest(%s::integer[], %s::bigint[]) AS mine (run, token)
    WHERE weft_leases.run = mine.run AND weft_leases.token = mine.token"""
    given = ([lease.no for lease in leases], [lease.token for lease in leases])
    connections.ask(query, given)


def renew(connections: PostgresPool, leases: Sequence[RunLease], seconds: float) -> None:
    """Let leases last `seconds` from now, those of them that nobody else has. Raises: `StoreError`.

    Rows that a writer has just renewed are passed over.
    """
    query = """UPDATE weft_leases SET expires = clock_timestamp() + make_interval(secs => %s)
    WHERE run IN (SELECT weft_leases.run FROM weft_leases
    JOIN unnest(%s::integer[], %s::bigint[]) AS mine (run, token) USING (run, token)
    FOR UPDATE OF weft_leases SKIP LOCKED)"""
    given = (seconds, [lease.no for lease in leases], [lease.token for lease in leases])
    connections.ask(query, given)


class Heartbeat:
    """Renews what `leases` gives, in a thread of its own, until it is stopped.

    A beat that fails is made up for by the next one: as long as nobody else takes a run, an expired
    lease is as good as any.
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
