"""Removing runs and the values that no remaining run refers to; then the file shrinks.

Concurrent writes are never lost: the newest batches are scanned again while the database is locked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from weft.core.ports.journal import PruneResult
from weft.durability.journal.pruning import AT_ONCE, ReachableRecords, beyond, lots
from weft.durability.journal.sqlite.batch_writer import transaction
from weft.durability.journal.sqlite.faults import is_full
from weft.durability.journal.sqlite.locks import FileLock, locked
from weft.durability.journal.sqlite.tables import SqliteTables, base_of, number
from weft.durability.journal.tables import RunRow


@dataclass(frozen=True, slots=True)
class _PruneSteps:
    """The most to remove, or move, in one transaction: each is written to the log first."""

    runs: int
    values: int
    pages: int


_LARGE: Final = _PruneSteps(runs=AT_ONCE, values=1 << 40, pages=1 << 30)
_SMALL: Final = _PruneSteps(runs=1, values=20, pages=20)


def prune(tables: SqliteTables, gone: Sequence[RunRow], max_bytes: int | None) -> PruneResult:
    """Remove `gone`, then the oldest runs until no more than `max_bytes` are used.

    Claimed runs stay. Where the disk is full, pruning takes small steps, with a checkpoint after
    each. A failed pruning keeps what it removed and can be repeated.

    Raises: `sqlite3.Error`, `OSError`, `StoreError`.
    """
    before = _used(tables.db)
    _checkpoint(tables.db)  # while there may be space for it: the log then starts anew
    removed: dict[int, RunRow] = {}
    try:
        _prune(tables, gone, max_bytes, _LARGE, removed)
    except sqlite3.Error as error:
        if not is_full(error):
            raise
        _prune(tables, gone, max_bytes, _SMALL, removed)
    left = _used(tables.db)
    runs = tuple(row.id for row in removed.values())
    return PruneResult(runs, max(0, before - left), left)


def _prune(
    tables: SqliteTables,
    gone: Sequence[RunRow],
    max_bytes: int | None,
    steps: _PruneSteps,
    removed: dict[int, RunRow],
) -> None:
    _remove(tables, gone, steps, removed)
    aim = max_bytes
    while True:
        _sweep(tables, steps)
        if max_bytes is None or aim is None or _used(tables.db) <= max_bytes:
            break
        more = _remove(tables, beyond(tables, aim), steps, removed)
        if not more and aim <= max_bytes // 4:
            break
        aim = aim * 3 // 4  # pages are never full: more is used than stored
    _shrink(tables.db, steps)


def _remove(
    tables: SqliteTables, gone: Sequence[RunRow], steps: _PruneSteps, removed: dict[int, RunRow]
) -> bool:
    """Remove `gone`, and add the removed runs to `removed`; whether there were any."""
    before = len(removed)
    left = [row for row in gone if row.no not in removed]
    for lot in lots(left, steps.runs):
        removed.update({row.no: row for row in _remove_lot(tables, lot, steps)})
    return len(removed) > before


def _remove_lot(tables: SqliteTables, gone: Sequence[RunRow], steps: _PruneSteps) -> list[RunRow]:
    db = tables.db
    taken: list[tuple[RunRow, FileLock]] = []
    try:
        for row in gone:
            lock = locked(tables.claim_file(row.no), name=False)
            if lock is not None:
                taken.append((row, lock))
        with _step(db, steps):
            for row, _ in taken:
                keys = base_of(row.no), base_of(row.no + 1)
                db.execute("DELETE FROM batches WHERE key > ? AND key < ?", keys)
                db.execute("DELETE FROM runs WHERE no = ?", (row.no,))
        for row, _ in taken:
            tables.once_file(row.no).unlink(missing_ok=True)
    finally:
        for _, lock in taken:
            lock.release()
    return [row for row, _ in taken]


def _sweep(tables: SqliteTables, steps: _PruneSteps) -> None:
    db, reached = tables.db, ReachableRecords(tables)
    reached.add_all()
    more = True
    while more:
        with _step(db, steps):
            reached.add_all()
            unused = [
                (no,)
                for no, digest in db.execute("SELECT no, digest FROM blobs")
                if digest not in reached.marks.digests
            ]
            db.executemany("DELETE FROM blobs WHERE no = ?", unused[: steps.values])
        more = len(unused) > steps.values


def _shrink(db: sqlite3.Connection, steps: _PruneSteps) -> None:
    before = -1
    while (free := number(db, "PRAGMA freelist_count")) not in (0, before):
        before = free
        # `execute` would take a single step, which is one page.
        db.executescript(f"PRAGMA incremental_vacuum({steps.pages})")
        if steps is _SMALL:
            _checkpoint(db)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def _step(db: sqlite3.Connection, steps: _PruneSteps) -> Iterator[None]:
    with transaction(db):
        yield
    if steps is _SMALL:
        _checkpoint(db)


def _checkpoint(db: sqlite3.Connection) -> None:
    """Write the log back to the database, as far as no process reads it."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _used(db: sqlite3.Connection) -> int:
    pages = number(db, "PRAGMA page_count") - number(db, "PRAGMA freelist_count")
    return pages * number(db, "PRAGMA page_size")
