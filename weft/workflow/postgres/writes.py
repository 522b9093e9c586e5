"""Writes to PostgreSQL: records of a run that this process has claimed, and signals.

Every write of records checks the run's lease: see `leases.advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from weft.core.codec import encode, encode_all
from weft.core.errors import StoreError
from weft.core.events import HumanAnswered, NodeFinished, RunFinished
from weft.core.ports.journal import Letter, Record, RunProgress
from weft.durability.journal.rows import A_WORD, Blobs, letter_in, node_of, packed, sealed
from weft.workflow.postgres import queue_moves as queue
from weft.workflow.postgres.connections import Connection, PostgresPool, Rows, rows_of
from weft.workflow.postgres.leases import PendingBatch, RunLease, advance, last_seq


def append(
    connections: PostgresPool,
    lease: RunLease,
    records: Sequence[Record],
    wall: Callable[[], datetime],
    seconds: float,
) -> None:
    """Write a batch atomically and exactly once, however often its connection is lost.

    If its end stays unknown because the server is away, the next call finds it out and skips what
    it repeats. `wall`: the clock, for the time of a run's end; `seconds`: the new term of the
    lease. Raises: `StoreError`.
    """
    with lease.lock:
        records = _unwritten(connections, lease, records)
        if not records:
            return
        try:
            _append(connections, lease, records, wall, seconds)
        except BaseException:
            lease.lists.clear()
            raise


def _append(
    connections: PostgresPool,
    lease: RunLease,
    records: Sequence[Record],
    wall: Callable[[], datetime],
    seconds: float,
) -> None:
    blobs = Blobs()
    before = lease.progress
    batch = PendingBatch(
        lease.seq + len(records),
        sealed(encode_all(records, blobs.keep, lease.lists)),
        before.after(records),
    )

    def write(db: Connection) -> None:
        if not advance(db, lease, batch.seq, seconds):
            _check_written(db, lease, batch)
            return
        keep(db, blobs.bodies)
        row = (lease.no, batch.seq, before.part, batch.body)
        db.execute("INSERT INTO weft_batches VALUES (%s, %s, %s, %s)", row)
        _settle(db, lease.no, records)
        _stand(db, lease.no, before, batch.progress, wall)

    try:
        connections.transact(write)
    except StoreError as error:
        if error.retryable:
            lease.unknown = batch
        raise
    lease.seq, lease.progress = batch.seq, batch.progress


def _unwritten(
    connections: PostgresPool, lease: RunLease, records: Sequence[Record]
) -> Sequence[Record]:
    """The `records` that an earlier call, whose end was unknown, has not written."""
    unknown = lease.unknown
    if unknown is None:
        return records
    written = connections.transact(lambda db: last_seq(db, lease)) == unknown.seq
    lease.unknown = None
    if not written:
        return records
    repeated = records[: unknown.seq - lease.seq]
    lease.seq, lease.progress = unknown.seq, unknown.progress
    same = sealed(encode_all(repeated, Blobs().keep)) == unknown.body
    return records[len(repeated) :] if same else records


def _check_written(db: Connection, lease: RunLease, batch: PendingBatch) -> None:
    """Check that an attempt committed this batch unseen. Raises: `StoreError`."""
    last = last_seq(db, lease)
    if last != batch.seq:
        message = f"the run {lease.run!r} ends with record {last}, not {lease.seq}"
        raise StoreError(message, hint="was the database restored from an older copy?")


def keep(db: Connection, bodies: Mapping[bytes, bytes]) -> None:
    """Store missing bodies; none of them can be removed before this transaction ends."""
    if not bodies:
        return
    db.execute("LOCK TABLE weft_blobs IN ROW EXCLUSIVE MODE")
    query = "SELECT digest FROM weft_blobs WHERE digest = ANY(%s)"
    stored = {digest for (digest,) in db.execute(query, (list(bodies),))}
    # In a fixed order, so that two processes that store the same values do not deadlock.
    new = sorted((digest, packed(body)) for digest, body in bodies.items() if digest not in stored)
    query = """INSERT INTO weft_blobs SELECT * FROM unnest(%s::bytea[], %s::bytea[])
    ON CONFLICT DO NOTHING"""
    db.execute(query, ([digest for digest, _ in new], [body for _, body in new]))


def _settle(db: Connection, no: int, records: Sequence[Record]) -> None:
    ends = [record for record in records if isinstance(record, RunFinished)]
    if ends:
        query = "DELETE FROM weft_letters WHERE run = %s AND (%s OR node IS DISTINCT FROM %s)"
        db.execute(query, (no, ends[-1].status == "succeeded", A_WORD))
        return
    nodes = [r.node for r in records if isinstance(r, (NodeFinished, HumanAnswered))]
    if nodes:
        query = "DELETE FROM weft_letters WHERE run = %s AND node = ANY(%s)"
        db.execute(query, (no, list(nodes)))


def _stand(
    db: Connection, no: int, before: RunProgress, after: RunProgress, wall: Callable[[], datetime]
) -> None:
    if after.asking != before.asking:
        db.execute("DELETE FROM weft_asking WHERE run = %s", (no,))
        query = "INSERT INTO weft_asking (run, node) SELECT %s, unnest(%s::text[])"
        db.execute(query, (no, list(after.asking)))
    if (after.part, after.status) != (before.part, before.status):
        ended = wall().isoformat() if after.status else ""
        query = "UPDATE weft_runs SET part = %s, status = %s, ended_wall = %s WHERE no = %s"
        db.execute(query, (after.part, after.status, ended, no))
        queue.move(db, no, "ended" if after.status else "running")


def send_signal(connections: PostgresPool, no: int, letter: Letter) -> None:
    """Leave a signal for the run `no`, which wakes if it asks. Raises: `StoreError`."""
    query = """INSERT INTO weft_letters (run, node, body, sent) VALUES (%s, %s, %s, %s)
    ON CONFLICT (sent) DO NOTHING"""
    row = (no, node_of(letter), sealed(encode(letter)), uuid4().hex)

    def write(db: Connection) -> None:
        queue.lock(db, no)  # a worker that leaves the run sees the signal, or is seen here
        db.execute(query, row)
        queue.wake(db, no)

    connections.transact(write)


def take_signals(
    connections: PostgresPool, no: int, lease: RunLease | None, look: str
) -> Sequence[Letter]:
    """Take the signals of the run `no`, with those that an earlier attempt `look` took.

    `lease`: that of this process, if any, which is then checked. Raises: `StoreError`.
    """
    waiting = """SELECT FROM weft_letters WHERE run = %s AND taken IN ('', %s) LIMIT 1"""
    if not connections.ask(waiting, (no, look)):  # usually; saves a write
        return []
    query = """WITH found AS (UPDATE weft_letters SET taken = %(look)s
    WHERE run = %(run)s AND taken IN ('', %(look)s)
    RETURNING no, body) SELECT body FROM found ORDER BY no"""

    def write(db: Connection) -> Rows:
        if lease is not None:
            last_seq(db, lease)
        return rows_of(db, query, {"look": look, "run": no})

    return [letter_in(body) for (body,) in connections.transact(write)]
