"""What the tables of a journal say of runs.

Does not write, and does not know who has a run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from weft.core.events import RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.progress import Progress, unknown_run
from weft.engine.journal.rows import Batch, Fetch

SEQ_BITS = 32
_COLUMNS = "no, id, flow, wall, ended_wall, part, status"


class Row(NamedTuple):
    """A run as its table has it."""

    no: int
    id: RunId
    flow: str
    wall: str
    ended_wall: str
    part: int
    status: RunStatus | None

    @property
    def base(self) -> int:
        """The keys of its batches are larger,"""
        return self.no << SEQ_BITS

    @property
    def end(self) -> int:
        """and smaller than this."""
        return (self.no + 1) << SEQ_BITS


def fetching(db: sqlite3.Connection) -> Fetch:
    """Reads values of this database."""

    def fetch(digest: bytes) -> bytes | None:
        row = db.execute("SELECT body FROM blobs WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else row[0]

    return fetch


def row_of(db: sqlite3.Connection, run: RunId) -> Row:
    """The row of a run. Raises: `UnknownReference`."""
    found = db.execute(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", (run,)).fetchone()  # noqa: S608
    if found is None:
        latest = db.execute("SELECT id FROM runs ORDER BY no DESC LIMIT 10000")
        raise unknown_run(run, [name for (name,) in latest])
    return Row(*found)


def rows(db: sqlite3.Connection, flow: str | None, limit: int | None) -> list[Row]:
    """The rows of all runs, or those of one flow; the latest first."""
    query = f"SELECT {_COLUMNS} FROM runs WHERE ?1 IS NULL OR flow = ?1 ORDER BY no DESC LIMIT ?2"  # noqa: S608
    return [Row(*found) for found in db.execute(query, (flow, -1 if limit is None else limit))]


def last_seq(db: sqlite3.Connection, row: Row) -> int:
    """The number of the last record; 0 when there is none."""
    query = "SELECT max(key) FROM batches WHERE key > ? AND key < ?"
    found = db.execute(query, (row.base, row.end)).fetchone()[0]
    return 0 if found is None else int(found) - row.base


def progress_of(db: sqlite3.Connection, row: Row) -> Progress:
    """How the run stands."""
    asking = db.execute("SELECT node FROM asking WHERE run = ? ORDER BY rowid", (row.no,))
    return Progress(row.part, row.status, [NodeId(node) for (node,) in asking])


def header_of(db: sqlite3.Connection, row: Row) -> bytes:
    """The sealed header of a run. Raises: `UnknownReference` when it was removed meanwhile."""
    found = db.execute("SELECT header FROM runs WHERE no = ?", (row.no,)).fetchone()
    if found is None:
        raise unknown_run(row.id, ())
    return bytes(found[0])


def batches_of(
    db: sqlite3.Connection, row: Row, after: int = 0, limit: int = -1
) -> Iterator[Batch]:
    """The batches that end after the record `after`, in order."""
    query = "SELECT key, part, body FROM batches WHERE key > ? AND key < ? ORDER BY key LIMIT ?"
    for key, part, body in db.execute(query, (row.base + after, row.end, limit)):
        yield key - row.base, part, body
