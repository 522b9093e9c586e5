"""What is written for a run that this process has: its records, and how it stands.

Does not know who may write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from weft.core.codec import encode_all
from weft.core.events import HumanAnswered, HumanAsked, NodeFinished, RunFinished, RunResumed
from weft.core.ports.journal import Record
from weft.core.progress import Progress
from weft.engine.journal.blobs import Blobs, packed, sealed
from weft.engine.journal.rows import A_WORD
from weft.engine.journal.sqlite.locks import FileLock
from weft.engine.journal.sqlite.tables import base_of

_INSERT = "INSERT INTO batches VALUES (?, ?, ?)"
_TELLING = frozenset({HumanAsked, HumanAnswered, NodeFinished, RunFinished, RunResumed})


@dataclass(slots=True)
class Held:
    """A run that this process has. `seq` is the number of its last record."""

    no: int
    seq: int
    progress: Progress
    lock: FileLock
    letters: bool = False
    """Whether there may be letters to it that were given out and not settled."""


def append(
    db: sqlite3.Connection, held: Held, records: Sequence[Record], wall: Callable[[], datetime]
) -> None:
    """Write a batch: all of it or nothing. `wall`: the clock, for the time of an end."""
    blobs = Blobs()
    body = sealed(encode_all(records, blobs.keep))
    row = (base_of(held.no) + held.seq + len(records), held.progress.part, body)
    telling = _telling(held, records)
    if not blobs.bodies and not telling:
        db.execute(_INSERT, row)  # one statement is a transaction by itself
    else:
        after = held.progress.after(telling)
        with transaction(db):
            keep(db, blobs.bodies)
            db.execute(_INSERT, row)
            for record in telling:
                _settle(db, held, record)
            if telling:
                _stand(db, held, after, wall().isoformat() if after.status else "")
        held.progress = after
    held.seq += len(records)


def _telling(held: Held, records: Sequence[Record]) -> list[Record]:
    """The records that change how the run stands; mostly there are none."""
    telling = [record for record in records if type(record) in _TELLING]
    quiet = not held.letters and not held.progress.asking
    if quiet and all(type(record) is NodeFinished for record in telling):
        return []
    return telling


def keep(db: sqlite3.Connection, bodies: Mapping[bytes, bytes]) -> None:
    """Store each body that is not there yet."""
    for digest, body in bodies.items():
        if db.execute("SELECT 1 FROM blobs WHERE digest = ?", (digest,)).fetchone() is None:
            values = (digest, packed(body))
            db.execute("INSERT INTO blobs (digest, body) VALUES (?, ?)", values)


def _settle(db: sqlite3.Connection, held: Held, record: Record) -> None:
    if isinstance(record, RunFinished):
        query = "DELETE FROM letters WHERE run = ? AND (? OR node IS NOT ?)"
        db.execute(query, (held.no, record.status == "succeeded", A_WORD))
    elif held.letters and isinstance(record, (NodeFinished, HumanAnswered)):
        db.execute("DELETE FROM letters WHERE run = ? AND node = ?", (held.no, record.node))


def _stand(db: sqlite3.Connection, held: Held, after: Progress, wall: str) -> None:
    if after.asking != held.progress.asking:
        db.execute("DELETE FROM asking WHERE run = ?", (held.no,))
        db.executemany("INSERT INTO asking VALUES (?, ?)", [(held.no, n) for n in after.asking])
    if (after.part, after.status) != (held.progress.part, held.progress.status):
        query = "UPDATE runs SET part = ?, status = ?, ended_wall = ? WHERE no = ?"
        db.execute(query, (after.part, after.status, wall, held.no))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Raises: `sqlite3.Error`."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
