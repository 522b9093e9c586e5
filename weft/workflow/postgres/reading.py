"""What the tables of a journal in PostgreSQL say of runs.

Does not write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.core.events import RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import RunSummary
from weft.core.progress import Progress, unknown_run
from weft.engine.journal.rows import Batch, Fetch
from weft.workflow.postgres.schema import Connection, one

_PAGE = 64


class Row(NamedTuple):
    """A run as its table has it."""

    no: int
    id: RunId
    flow: str
    wall: str
    ended_wall: str
    part: int
    status: RunStatus | None


def fetching(db: Connection) -> Fetch:
    """Reads values of this database."""

    def fetch(digest: bytes) -> bytes | None:
        found: bytes | None = one(db, "SELECT body FROM weft_blobs WHERE digest = %s", digest)
        return found

    return fetch


def row_of(db: Connection, run: RunId) -> Row:
    """The row of a run. Raises: `UnknownReference`."""
    query = "SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs WHERE id = %s"
    found = db.execute(query, (run,)).fetchone()
    if found is None:
        latest = db.execute("SELECT id FROM weft_runs ORDER BY no DESC LIMIT 10000")
        raise unknown_run(run, [name for (name,) in latest])
    return Row(*found)


def rows(db: Connection, flow: str | None = None, limit: int | None = None) -> list[Row]:
    """The rows of all runs, or those of one flow; the latest first."""
    query = """SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs
    WHERE %s::text IS NULL OR flow = %s ORDER BY no DESC LIMIT %s"""
    return [Row(*found) for found in db.execute(query, (flow, flow, limit))]


def holders(db: Connection) -> dict[int, str]:
    """Who has which run: the sessions that have its advisory lock, by the numbers of runs."""
    query = """SELECT locks.objid, activity.application_name FROM pg_locks AS locks
    JOIN pg_database AS here ON here.oid = locks.database AND here.datname = current_database()
    LEFT JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
    WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
    AND locks.classid = 'weft_runs'::regclass::oid"""
    return {int(no): name or "another process" for no, name in db.execute(query)}


def progress_of(db: Connection, row: Row) -> Progress:
    """How the run stands."""
    asking = db.execute("SELECT node FROM weft_asking WHERE run = %s ORDER BY no", (row.no,))
    return Progress(row.part, row.status, [NodeId(node) for (node,) in asking])


def last_seq(db: Connection, row: Row) -> int:
    """The number of the last record; 0 when there is none."""
    return int(one(db, "SELECT max(seq) FROM weft_batches WHERE run = %s", row.no) or 0)


def summary(db: Connection, row: Row, held: bool) -> RunSummary:
    """The run in one line."""
    progress = progress_of(db, row)
    return RunSummary(
        run=row.id,
        flow=row.flow,
        standing=progress.standing(held),
        wall=row.wall,
        ended_wall=row.ended_wall,
        parts=row.part,
        records=last_seq(db, row),
        asking=tuple(progress.asking),
    )


def header_of(db: Connection, row: Row) -> bytes:
    """The sealed header of a run. Raises: `UnknownReference` when it was removed meanwhile."""
    found: bytes | None = one(db, "SELECT header FROM weft_runs WHERE no = %s", row.no)
    if found is None:
        raise unknown_run(row.id, ())
    return found


def page_of(db: Connection, row: Row, after: int) -> list[Batch]:
    """The next batches that end after the record `after`, in order."""
    query = """SELECT seq, part, body FROM weft_batches WHERE run = %s AND seq > %s
    ORDER BY seq LIMIT %s"""
    return [(seq, part, body) for seq, part, body in db.execute(query, (row.no, after, _PAGE))]


def batches_of(db: Connection, row: Row, after: int = 0) -> Iterator[Batch]:
    """All batches that end after the record `after`, in order."""
    while page := page_of(db, row, after):
        yield from page
        after = page[-1][0]
