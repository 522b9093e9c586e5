"""Removing runs from PostgreSQL, and the values that none of the runs left refers to.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write values. Does not know why a run has to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from weft.core.ports.journal import Pruned
from weft.engine.journal.marks import Marks
from weft.workflow.postgres.locks import lock, unlock
from weft.workflow.postgres.reading import Row, batches_of, fetching, header_of, holders, rows
from weft.workflow.postgres.schema import Connection
from weft.workflow.postgres.writing import changed

_AT_ONCE = 100  # runs, each of which takes a lock of the server's while it is removed


class Reached:
    """What is reached from runs, each of which may have grown when it is asked for again."""

    def __init__(self, db: Connection) -> None:
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


def prune(db: Connection, gone: Sequence[Row], max_bytes: int | None) -> Pruned:
    """Remove `gone`, then the oldest runs until what is kept takes no more than `max_bytes`.

    Runs that a session has stay. Sizes are those of headers, records and values: the server gives
    pages back when it likes.
    """
    before = _size(db)
    removed = _remove(db, gone)
    if max_bytes is not None:
        removed += _remove(db, _beyond(db, max_bytes))
    _sweep(db)
    left = _size(db)
    return Pruned(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(db: Connection, gone: Sequence[Row]) -> list[Row]:
    once = list({row.no: row for row in gone}.values())
    removed: list[Row] = []
    for start in range(0, len(once), _AT_ONCE):
        removed += _remove_some(db, once[start : start + _AT_ONCE])
    return removed


def _remove_some(db: Connection, gone: Sequence[Row]) -> list[Row]:
    taken: list[Row] = []
    with ExitStack() as locks:
        for row in gone:
            if lock(db, row.no):
                locks.callback(unlock, db, row.no)
                taken.append(row)
        with db.transaction():
            numbers = [row.no for row in taken]
            db.execute("DELETE FROM weft_runs WHERE no = ANY(%s)", (numbers,))
            changed(db)
    return taken


def _beyond(db: Connection, max_bytes: int) -> list[Row]:
    """The oldest runs, without which the others keep no more than `max_bytes`."""
    held = holders(db)
    latest = sorted(rows(db), key=lambda row: row.no not in held)
    reached = Reached(db)
    for place, row in enumerate(latest):
        reached.add(row)
        if reached.marks.size_bytes > max_bytes:
            return [beyond for beyond in latest[place:] if beyond.no not in held]
    return []


def _sweep(db: Connection) -> None:
    reached = Reached(db)
    for row in rows(db):
        reached.add(row)
    with db.transaction():
        db.execute("LOCK TABLE weft_blobs IN SHARE ROW EXCLUSIVE MODE")
        for row in rows(db):
            reached.add(row)
        known = {digest for (digest,) in db.execute("SELECT digest FROM weft_blobs")}
        unused = list(known - reached.marks.digests)
        db.execute("DELETE FROM weft_blobs WHERE digest = ANY(%s)", (unused,))


def _size(db: Connection) -> int:
    reached = Reached(db)
    for row in rows(db):
        reached.add(row)
    return reached.marks.size_bytes
