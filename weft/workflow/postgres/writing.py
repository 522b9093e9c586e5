"""What is written to PostgreSQL for a run that this process has.

Does not know who may write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from weft.core.codec import encode_all
from weft.core.events import HumanAnswered, NodeFinished, RunFinished
from weft.core.ports.journal import Record
from weft.core.progress import Progress
from weft.engine.journal.blobs import Blobs, packed, sealed
from weft.engine.journal.rows import A_WORD
from weft.workflow.postgres.schema import CHANGED, Connection


@dataclass(slots=True)
class Held:
    """A run that this process has. `seq` is the number of its last record."""

    no: int
    seq: int
    progress: Progress


def append(
    db: Connection, held: Held, records: Sequence[Record], wall: Callable[[], datetime]
) -> None:
    """Write a batch: all of it or nothing. `wall`: the clock, for the time of an end."""
    blobs = Blobs()
    body = sealed(encode_all(records, blobs.keep))
    seq = held.seq + len(records)
    before = held.progress
    after = before.after(records)
    with db.transaction():
        keep(db, blobs.bodies)
        row = (held.no, seq, before.part, body)
        db.execute("INSERT INTO weft_batches VALUES (%s, %s, %s, %s)", row)
        _settle(db, held, records)
        _stand(db, held, after, wall)
        changed(db)
    held.seq, held.progress = seq, after


def keep(db: Connection, bodies: Mapping[bytes, bytes]) -> None:
    """Store each body that is not there yet; nobody can remove it before this transaction ends."""
    if not bodies:
        return
    db.execute("LOCK TABLE weft_blobs IN ROW EXCLUSIVE MODE")
    query = "SELECT digest FROM weft_blobs WHERE digest = ANY(%s)"
    known = {digest for (digest,) in db.execute(query, (list(bodies),))}
    new = [(digest, packed(body)) for digest, body in bodies.items() if digest not in known]
    with db.cursor() as cursor:
        # In one order for all: two processes that keep the same values must not wait for each other
        cursor.executemany(
            "INSERT INTO weft_blobs VALUES (%s, %s) ON CONFLICT DO NOTHING", sorted(new)
        )


def changed(db: Connection) -> None:
    """Tell everybody, once this transaction is done."""
    db.execute(f"NOTIFY {CHANGED}")


def _settle(db: Connection, held: Held, records: Sequence[Record]) -> None:
    ends = [record for record in records if isinstance(record, RunFinished)]
    if ends:
        query = "DELETE FROM weft_letters WHERE run = %s AND (%s OR node IS DISTINCT FROM %s)"
        db.execute(query, (held.no, ends[-1].status == "succeeded", A_WORD))
        return
    nodes = [r.node for r in records if isinstance(r, (NodeFinished, HumanAnswered))]
    if nodes:
        query = "DELETE FROM weft_letters WHERE run = %s AND node = ANY(%s)"
        db.execute(query, (held.no, list(nodes)))


def _stand(db: Connection, held: Held, after: Progress, wall: Callable[[], datetime]) -> None:
    before = held.progress
    if after.asking != before.asking:
        db.execute("DELETE FROM weft_asking WHERE run = %s", (held.no,))
        with db.cursor() as cursor:
            rows = [(held.no, node) for node in after.asking]
            cursor.executemany("INSERT INTO weft_asking (run, node) VALUES (%s, %s)", rows)
    if (after.part, after.status) != (before.part, before.status):
        ended = wall().isoformat() if after.status else ""
        query = "UPDATE weft_runs SET part = %s, status = %s, ended_wall = %s WHERE no = %s"
        db.execute(query, (after.part, after.status, ended, held.no))
