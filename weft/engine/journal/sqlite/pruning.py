"""Removing runs, and the values that none of the runs left refers to; then the file shrinks.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write. Does not know why a run has to go.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from weft.core.ports.journal import Pruned
from weft.engine.journal.marks import Marks
from weft.engine.journal.sqlite.locks import FileLock, is_locked, locked
from weft.engine.journal.sqlite.reading import Row, batches_of, fetching, header_of, rows
from weft.engine.journal.sqlite.schema import number
from weft.engine.journal.sqlite.writing import transaction

ClaimFile = Callable[[int], Path]
_AT_ONCE = 100  # runs, each of which takes an open file while it is removed


class Reached:
    """What is reached from runs, each of which may have grown when it is asked for again."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._last: dict[int, int] = {}
        self.marks = Marks(fetching(db))

    def add(self, row: Row) -> None:
        """Mark what a run refers to; when repeated, only what has been added to it."""
        if row.no not in self._last:
            self._last[row.no] = 0
            self.marks.follow([header_of(self._db, row)])
        for last, _, body in batches_of(self._db, row, self._last[row.no]):
            self._last[row.no] = last
            self.marks.follow([body])


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
    once = list({row.no: row for row in gone}.values())
    removed: list[Row] = []
    for start in range(0, len(once), _AT_ONCE):
        removed += _remove_some(db, once[start : start + _AT_ONCE], claim_file)
    return removed


def _remove_some(db: sqlite3.Connection, gone: Sequence[Row], claim_file: ClaimFile) -> list[Row]:
    taken: list[tuple[Row, FileLock]] = []
    try:
        for row in gone:
            lock = locked(claim_file(row.no))
            if lock is not None:
                taken.append((row, lock))
        with transaction(db):
            for row, _ in taken:
                db.execute("DELETE FROM batches WHERE key > ? AND key < ?", (row.base, row.end))
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
    reached = Reached(db)
    for row in held:
        reached.add(row)
    for place, row in enumerate(free):
        reached.add(row)
        if reached.marks.size_bytes > aim_bytes:
            return free[place:]
    return []


def _sweep(db: sqlite3.Connection) -> None:
    reached = Reached(db)
    for row in rows(db, None, None):
        reached.add(row)
    with transaction(db):
        for row in rows(db, None, None):
            reached.add(row)
        unused = [
            (no,)
            for no, digest in db.execute("SELECT no, digest FROM blobs")
            if digest not in reached.marks.digests
        ]
        db.executemany("DELETE FROM blobs WHERE no = ?", unused)


def _shrink(db: sqlite3.Connection) -> None:
    # `execute` would make one step of it, which is one page.
    db.executescript("PRAGMA incremental_vacuum")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _used(db: sqlite3.Connection) -> int:
    pages = number(db, "PRAGMA page_count") - number(db, "PRAGMA freelist_count")
    return pages * number(db, "PRAGMA page_size")
