"""How the tables of a journal in PostgreSQL are asked.

Does not write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, LiteralString, Protocol

from weft.core.ids import NodeId, RunId
from weft.engine.journal.rows import Batch
from weft.engine.journal.tables import PAGE, Row, Tables
from weft.workflow.postgres.connections import Connection, Rows, rows_of


class Ask(Protocol):
    """Gives the rows of a statement."""

    def __call__(self, query: LiteralString, parameters: Sequence[object] = ()) -> Rows: ...


class PostgresTables(Tables):
    """The tables, as `ask` sees them: within one transaction, or each time in another."""

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self._ask = ask

    @classmethod
    def within(cls, db: Connection) -> PostgresTables:
        """The tables as the transaction of `db` sees them."""
        return cls(partial(rows_of, db))

    def found(self, run: RunId) -> Row | None:
        query = "SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs WHERE id = %s"
        found = self._ask(query, (run,))
        return Row(*found[0]) if found else None

    def rows(self, flow: str | None = None, limit: int | None = None) -> list[Row]:
        query = """SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs
        WHERE %s::text IS NULL OR flow = %s ORDER BY no DESC LIMIT %s"""
        return [Row(*found) for found in self._ask(query, (flow, flow, limit))]

    def sealed_header(self, row: Row) -> bytes | None:
        found: bytes | None = self._one("SELECT header FROM weft_runs WHERE no = %s", row.no)
        return found

    def asking(self, row: Row) -> list[NodeId]:
        query = "SELECT node FROM weft_asking WHERE run = %s ORDER BY no"
        return [NodeId(node) for (node,) in self._ask(query, (row.no,))]

    def last_seq(self, row: Row) -> int:
        return int(self._one("SELECT max(seq) FROM weft_batches WHERE run = %s", row.no) or 0)

    def page_of(self, row: Row, after: int) -> list[Batch]:
        query = """SELECT seq, part, body FROM weft_batches WHERE run = %s AND seq > %s
        ORDER BY seq LIMIT %s"""
        found = self._ask(query, (row.no, after, PAGE))
        return [Batch(seq, part, body) for seq, part, body in found]

    def fetch(self, digest: bytes) -> bytes | None:
        found: bytes | None = self._one("SELECT body FROM weft_blobs WHERE digest = %s", digest)
        return found

    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        query = "SELECT digest, body FROM weft_blobs"
        return [(digest, body) for digest, body in self._ask(query)]

    def holders(self, rows: Sequence[Row] = ()) -> dict[int, str]:  # noqa: ARG002 - all at once
        """The processes whose leases of runs have not ended."""
        query = "SELECT run, holder FROM weft_leases WHERE expires > clock_timestamp()"
        return dict(self._ask(query))

    def _one(self, query: LiteralString, *parameters: object) -> Any:
        found = self._ask(query, parameters)
        return found[0][0] if found else None
