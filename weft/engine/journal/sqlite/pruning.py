"""Removing runs, and the values that none of the runs left refers to; then the file shrinks.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write. Does not know why a run has to go.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from weft.core.ports.journal import Pruned
from weft.engine.journal.pruning import Reached, beyond, lots
from weft.engine.journal.sqlite.locks import FileLock, locked
from weft.engine.journal.sqlite.schema import number
from weft.engine.journal.sqlite.tables import SqliteTables, base_of
from weft.engine.journal.sqlite.writing import transaction
from weft.engine.journal.tables import Row


def prune(tables: SqliteTables, gone: Sequence[Row], max_bytes: int | None) -> Pruned:
    """Remove `gone`, then the oldest runs until no more than `max_bytes` are used.

    Runs that a process has stay. Raises: `sqlite3.Error`, `OSError`, `StoreError`.
    """
    before = _used(tables.db)
    removed = _remove(tables, gone)
    aim = max_bytes
    while True:
        _sweep(tables)
        if max_bytes is None or aim is None or _used(tables.db) <= max_bytes:
            break
        more = _remove(tables, beyond(tables, aim))
        if not more and aim <= max_bytes // 4:
            break
        removed += more
        aim = aim * 3 // 4  # pages are never full: what is used is more than what is kept
    _shrink(tables.db)
    left = _used(tables.db)
    return Pruned(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(tables: SqliteTables, gone: Sequence[Row]) -> list[Row]:
    return [row for lot in lots(gone) for row in _remove_lot(tables, lot)]


def _remove_lot(tables: SqliteTables, gone: Sequence[Row]) -> list[Row]:
    db = tables.db
    taken: list[tuple[Row, FileLock]] = []
    try:
        for row in gone:
            lock = locked(tables.claim_file(row.no))
            if lock is not None:
                taken.append((row, lock))
        with transaction(db):
            for row, _ in taken:
                keys = base_of(row.no), base_of(row.no + 1)
                db.execute("DELETE FROM batches WHERE key > ? AND key < ?", keys)
                db.execute("DELETE FROM runs WHERE no = ?", (row.no,))
    finally:
        for _, lock in taken:
            lock.release()
    return [row for row, _ in taken]


def _sweep(tables: SqliteTables) -> None:
    db, reached = tables.db, Reached(tables)
    reached.add_all()
    with transaction(db):
        reached.add_all()
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
