"""Rows of a journal's database as records, headers and summaries.

Does not write, and does not know who has a run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from weft.core.codec import decode, decode_all
from weft.core.events import RunResumed, RunStatus
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Letter, Numbered, RunHeader
from weft.core.progress import Progress, unknown_run
from weft.engine.journal.blobs import named, unsealed, verified

SEQ_BITS = 32
_CACHED_CHARACTERS = 1 << 23


class Row(NamedTuple):
    """A run as its tables have it."""

    no: int
    id: RunId
    flow: str
    wall: str
    ended_wall: str
    part: int
    status: RunStatus | None

    @property
    def base(self) -> int:
        """What the keys of its batches begin with."""
        return self.no << SEQ_BITS


_COLUMNS = "no, id, flow, wall, ended_wall, part, status"


class Values:
    """Reads what was kept apart. Remembers what it read last: conversations share messages."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._texts: dict[str, str] = {}
        self._characters = 0

    def get(self, name: str) -> str:
        """The text of a name. Raises: `StoreError`."""
        text = self._texts.get(name)
        if text is None:
            query = "SELECT body FROM blobs WHERE digest = ?"
            row = self._db.execute(query, (named(name),)).fetchone()
            text = verified(name, None if row is None else row[0])
            self._remember(name, text)
        return text

    def _remember(self, name: str, text: str) -> None:
        self._characters += len(text)
        if self._characters > _CACHED_CHARACTERS:
            self._texts.clear()
            self._characters = len(text)
        self._texts[name] = text


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
    found = db.execute(query, (row.base, row.base + (1 << SEQ_BITS))).fetchone()[0]
    return 0 if found is None else int(found) - row.base


def progress_of(db: sqlite3.Connection, row: Row) -> Progress:
    """How the run stands."""
    asking = db.execute("SELECT node FROM asking WHERE run = ? ORDER BY rowid", (row.no,))
    return Progress(row.part, row.status, [NodeId(node) for (node,) in asking])


def header_of(db: sqlite3.Connection, run: RunId, values: Values) -> RunHeader:
    """What the run was. Raises: `UnknownReference`, `StoreError`."""
    query = "SELECT header FROM runs WHERE no = ?"
    body = db.execute(query, (row_of(db, run).no,)).fetchone()[0]
    header: RunHeader = decode(unsealed(body), values.get)
    return header


def batch(last: int, part: int, body: bytes, values: Values) -> Iterator[Numbered]:
    """The records of one batch, of which the last has the number `last`. Raises: `StoreError`."""
    records = decode_all(unsealed(body), values.get)
    for seq, record in enumerate(records, last - len(records) + 1):
        if isinstance(record, RunResumed):
            part = record.part
        yield Numbered(seq, part, record)


def letter_of(body: bytes, values: Values) -> Letter:
    """A letter. Raises: `StoreError`."""
    letter: Letter = decode(unsealed(body), values.get)
    return letter
