"""Removing runs, and the values that none of the runs left refers to; then the file shrinks.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write. Does not know why a run has to go.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from weft.core.ports.journal import Pruned
from weft.engine.journal.blobs import as_text, named, unpacked, unsealed
from weft.engine.journal.sqlite.locks import FileLock, is_locked, locked
from weft.engine.journal.sqlite.reading import SEQ_BITS, Row, rows
from weft.engine.journal.sqlite.schema import number
from weft.engine.journal.sqlite.writing import transaction

ClaimFile = Callable[[int], Path]
# Inside a JSON string the quotes would be escaped: only the codec writes this.
_REFERENCE = re.compile(r'\{"~r":"([A-Za-z0-9_-]{32})"\}')
_ROW_BYTES = 48  # what a row costs beside its body, roughly


class Marks:
    """What is reached from some runs: `digests` of values, and `size_bytes` of all of it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._last: dict[int, int] = {}
        self.digests: set[bytes] = set()
        self.size_bytes = 0

    def reach(self, row: Row) -> None:
        """Mark what a run refers to; when repeated, only what has been added to it."""
        if row.no not in self._last:
            self._last[row.no] = row.base
            query = "SELECT header FROM runs WHERE no = ?"
            self._follow([body for (body,) in self._db.execute(query, (row.no,))])
        query = "SELECT key, body FROM batches WHERE key > ? AND key < ? ORDER BY key"
        end = row.base + (1 << SEQ_BITS)
        for key, body in self._db.execute(query, (self._last[row.no], end)):
            self._last[row.no] = key
            self._follow([body])

    def _follow(self, rows: Sequence[bytes]) -> None:
        self._count(rows)
        waiting = [unsealed(row) for row in rows]
        while waiting:
            for digest in {named(name) for name in _REFERENCE.findall(waiting.pop())}:
                if digest not in self.digests:
                    self.digests.add(digest)
                    query = "SELECT body FROM blobs WHERE digest = ?"
                    found = [body for (body,) in self._db.execute(query, (digest,))]
                    self._count(found)
                    waiting += [as_text(unpacked(body)) for body in found]

    def _count(self, bodies: Sequence[bytes]) -> None:
        self.size_bytes += sum(map(len, bodies)) + _ROW_BYTES * len(bodies)


def prune(
    db: sqlite3.Connection, gone: Sequence[Row], max_bytes: int | None, claim_file: ClaimFile
) -> Pruned:
    """Remove `gone`, then the oldest runs until no more than `max_bytes` are used.

    Runs that a process has stay. Raises: `sqlite3.Error`, `OSError`, `StoreError`.
    """
    before = _used(db)
    removed = _remove(db, gone, claim_file)
    aim = max_bytes
    while True:
        _sweep(db)
        if max_bytes is None or aim is None or _used(db) <= max_bytes:
            break
        more = _remove(db, _beyond(db, aim, claim_file), claim_file)
        if not more and aim <= max_bytes // 4:
            break
        removed += more
        aim = aim * 3 // 4  # pages are never full: what is used is more than what is kept
    _shrink(db)
    left = _used(db)
    return Pruned(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(db: sqlite3.Connection, gone: Sequence[Row], claim_file: ClaimFile) -> list[Row]:
    taken: list[tuple[Row, FileLock]] = []
    try:
        for row in {row.no: row for row in gone}.values():
            lock = locked(claim_file(row.no))
            if lock is not None:
                taken.append((row, lock))
        with transaction(db):
            for row, _ in taken:
                end = row.base + (1 << SEQ_BITS)
                db.execute("DELETE FROM batches WHERE key > ? AND key < ?", (row.base, end))
                db.execute("DELETE FROM runs WHERE no = ?", (row.no,))
    finally:
        for _, lock in taken:
            lock.release()
    return [row for row, _ in taken]


def _beyond(db: sqlite3.Connection, aim_bytes: int, claim_file: ClaimFile) -> list[Row]:
    """The oldest runs, without which the others keep no more than `aim_bytes`."""
    latest = rows(db, None, None)
    held = [row for row in latest if is_locked(claim_file(row.no))]
    free = [row for row in latest if row not in held]
    marks = Marks(db)
    for row in held:
        marks.reach(row)
    for place, row in enumerate(free):
        marks.reach(row)
        if marks.size_bytes > aim_bytes:
            return free[place:]
    return []


def _sweep(db: sqlite3.Connection) -> None:
    marks = Marks(db)
    for row in rows(db, None, None):
        marks.reach(row)
    with transaction(db):
        for row in rows(db, None, None):
            marks.reach(row)
        unused = [
            (no,)
            for no, digest in db.execute("SELECT no, digest FROM blobs")
            if digest not in marks.digests
        ]
        db.executemany("DELETE FROM blobs WHERE no = ?", unused)


def _shrink(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA incremental_vacuum").fetchall()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _used(db: sqlite3.Connection) -> int:
    pages = number(db, "PRAGMA page_count") - number(db, "PRAGMA freelist_count")
    return pages * number(db, "PRAGMA page_size")
