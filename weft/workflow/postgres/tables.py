"""How the tables of a journal in PostgreSQL are asked.

Does not write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.core.ids import NodeId, RunId
from weft.engine.journal.rows import Batch
from weft.engine.journal.tables import PAGE, Row, Tables
from weft.workflow.postgres.schema import Connection, one


class PostgresTables(Tables):
    """The tables that a connection sees."""

    def __init__(self, db: Connection) -> None:
        super().__init__()
        self.db = db

    def found(self, run: RunId) -> Row | None:
        query = "SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs WHERE id = %s"
        found = self.db.execute(query, (run,)).fetchone()
        return None if found is None else Row(*found)

    def rows(self, flow: str | None = None, limit: int | None = None) -> list[Row]:
        query = """SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs
        WHERE %s::text IS NULL OR flow = %s ORDER BY no DESC LIMIT %s"""
        return [Row(*found) for found in self.db.execute(query, (flow, flow, limit))]

    def sealed_header(self, row: Row) -> bytes | None:
        found: bytes | None = one(self.db, "SELECT header FROM weft_runs WHERE no = %s", row.no)
        return found

    def asking(self, row: Row) -> list[NodeId]:
        query = "SELECT node FROM weft_asking WHERE run = %s ORDER BY no"
        return [NodeId(node) for (node,) in self.db.execute(query, (row.no,))]

    def last_seq(self, row: Row) -> int:
        return int(one(self.db, "SELECT max(seq) FROM weft_batches WHERE run = %s", row.no) or 0)

    def page_of(self, row: Row, after: int) -> list[Batch]:
        query = """SELECT seq, part, body FROM weft_batches WHERE run = %s AND seq > %s
        ORDER BY seq LIMIT %s"""
        return [
            (seq, part, body) for seq, part, body in self.db.execute(query, (row.no, after, PAGE))
        ]

    def fetch(self, digest: bytes) -> bytes | None:
        found: bytes | None = one(self.db, "SELECT body FROM weft_blobs WHERE digest = %s", digest)
        return found

    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        query = "SELECT digest, body FROM weft_blobs"
        return [(digest, body) for digest, body in self.db.execute(query)]

    def holders(self, rows: Sequence[Row] = ()) -> dict[int, str]:  # noqa: ARG002 - all at once
        """The sessions that have the advisory locks of runs."""
        query = """SELECT locks.objid, activity.application_name FROM pg_locks AS locks
        JOIN pg_database AS here ON here.oid = locks.database AND here.datname = current_database()
        LEFT JOIN pg_stat_activity AS activity ON activity.pid = locks.pid
        WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
        AND locks.classid = 'weft_runs'::regclass::oid"""
        return {int(no): name or "another process" for no, name in self.db.execute(query)}
