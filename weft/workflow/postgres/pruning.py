"""Removing runs from PostgreSQL, and the values that none of the runs left refers to.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write values. Does not know why a run has to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from weft.core.ports.journal import Pruned
from weft.engine.journal.pruning import Reached, beyond, lots
from weft.engine.journal.tables import Row
from weft.workflow.postgres.locks import lock, unlock
from weft.workflow.postgres.tables import PostgresTables
from weft.workflow.postgres.writing import changed


def prune(tables: PostgresTables, gone: Sequence[Row], max_bytes: int | None) -> Pruned:
    """Remove `gone`, then the oldest runs until what is kept takes no more than `max_bytes`.

    Runs that a session has stay. Sizes are those of headers, records and values: the server gives
    pages back when it likes.
    """
    before = _size(tables)
    removed = _remove(tables, gone)
    if max_bytes is not None:
        removed += _remove(tables, beyond(tables, max_bytes))
    _sweep(tables)
    left = _size(tables)
    return Pruned(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(tables: PostgresTables, gone: Sequence[Row]) -> list[Row]:
    return [row for lot in lots(gone) for row in _remove_lot(tables, lot)]


def _remove_lot(tables: PostgresTables, gone: Sequence[Row]) -> list[Row]:
    db = tables.db
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


def _sweep(tables: PostgresTables) -> None:
    db, reached = tables.db, Reached(tables)
    reached.add_all()
    with db.transaction():
        db.execute("LOCK TABLE weft_blobs IN SHARE ROW EXCLUSIVE MODE")
        reached.add_all()
        known = {digest for (digest,) in db.execute("SELECT digest FROM weft_blobs")}
        unused = list(known - reached.marks.digests)
        db.execute("DELETE FROM weft_blobs WHERE digest = ANY(%s)", (unused,))


def _size(tables: PostgresTables) -> int:
    reached = Reached(tables)
    reached.add_all()
    return reached.marks.size_bytes
