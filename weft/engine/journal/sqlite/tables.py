"""How the tables of a journal in SQLite are asked.

Does not write.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from weft.core.ids import NodeId, RunId
from weft.engine.journal.chain import START
from weft.engine.journal.rows import Batch
from weft.engine.journal.sqlite.locks import holder, is_locked
from weft.engine.journal.sqlite.schema import number
from weft.engine.journal.tables import PAGE, Row, Tables

SEQ_BITS = 32
_ROW = "SELECT no, id, flow, wall, ended_wall, part, status, end_seq, logged FROM runs"


def base_of(no: int) -> int:
    """The keys of a run's batches are larger, and no larger than that of the next run."""
    return no << SEQ_BITS


class SqliteTables(Tables):
    """The tables in the file `path`."""

    errors = (sqlite3.Error,)

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        super().__init__()
        self.db = db
        self._claims = path.with_name(f"{path.name}.claims")
        self.once_files = path.with_name(f"{path.name}.once")

    def claim_file(self, no: int) -> Path:
        """What whoever has a run locks."""
        return self._claims / str(no)

    def once_file(self, no: int) -> Path:
        """Where the `once` calls of a run are, beside the database."""
        return self.once_files / str(no)

    def found(self, run: RunId) -> Row | None:
        found = self.db.execute(f"{_ROW} WHERE id = ?", (run,)).fetchone()
        return None if found is None else Row(*found)

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        """Those of some ids that there are runs of."""
        places = ",".join("?" * len(runs))
        query = f"SELECT id FROM runs WHERE id IN ({places})"  # noqa: S608 - question marks
        return frozenset(run for (run,) in self.db.execute(query, tuple(runs)))

    def has_number(self, no: int) -> bool:
        """Whether a run has this number."""
        return self.db.execute("SELECT 1 FROM runs WHERE no = ?", (no,)).fetchone() is not None

    def having_runs(self, numbers: Iterable[int]) -> set[int]:
        """Those of some numbers that runs have, asked for all at once."""
        query = "SELECT no FROM runs WHERE no IN (SELECT value FROM json_each(?))"
        return {no for (no,) in self.db.execute(query, (json.dumps(list(numbers)),))}

    def rows(self, flow: str | None = None, limit: int | None = None) -> list[Row]:
        query = f"{_ROW} WHERE ?1 IS NULL OR flow = ?1 ORDER BY no DESC LIMIT ?2"
        found = self.db.execute(query, (flow, -1 if limit is None else limit))
        return [Row(*row) for row in found]

    def sealed_header(self, row: Row) -> bytes | None:
        found = self.db.execute("SELECT header FROM runs WHERE no = ?", (row.no,)).fetchone()
        return None if found is None else bytes(found[0])

    def asking(self, row: Row) -> list[NodeId]:
        query = "SELECT node FROM asking WHERE run = ? ORDER BY rowid"
        return [NodeId(node) for (node,) in self.db.execute(query, (row.no,))]

    def last_seq(self, row: Row) -> int:
        base, end = base_of(row.no), base_of(row.no + 1)
        query = "SELECT max(key) FROM batches WHERE key > ? AND key < ?"
        last = number(self.db, query, base, end)
        return last - base if last else 0

    def page_of(self, row: Row, after: int) -> list[Batch]:
        base, end = base_of(row.no), base_of(row.no + 1)
        query = """SELECT key, part, body, chain FROM batches WHERE key > ? AND key < ?
        ORDER BY key LIMIT ?"""
        found = self.db.execute(query, (base + after, end, PAGE))
        return [Batch(key - base, *rest) for key, *rest in found]

    def chain_at(self, row: Row, seq: int) -> bytes:
        """The chain at the batch that ends with the record `seq`; empty where there is none."""
        query = "SELECT chain FROM batches WHERE key = ?"
        found = self.db.execute(query, (base_of(row.no) + seq,)).fetchone()
        return START if found is None or found[0] is None else bytes(found[0])

    def batches_after(self, row: Row, seq: int) -> int:
        """How many batches end after the record `seq`."""
        keys = base_of(row.no) + seq, base_of(row.no + 1)
        return number(self.db, "SELECT count(*) FROM batches WHERE key > ? AND key < ?", *keys)

    def fetch(self, digest: bytes) -> bytes | None:
        row = self.db.execute("SELECT body FROM blobs WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else row[0]

    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        return self.db.execute("SELECT digest, body FROM blobs")

    def holders(self, rows: Sequence[Row]) -> dict[int, str]:
        files = {row.no: self.claim_file(row.no) for row in rows}
        return {no: holder(file) for no, file in files.items() if is_locked(file)}
