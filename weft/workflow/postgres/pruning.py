"""Removing runs from PostgreSQL, and the values that none of the runs left refers to.

What is written meanwhile by others is never lost: their newest batches are looked through again
while nobody can write values. Does not know why a run has to go.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports.journal import Pruned
from weft.engine.journal.pruning import Reached, beyond, lots
from weft.engine.journal.tables import Row
from weft.workflow.postgres.connections import Connection, Connections
from weft.workflow.postgres.tables import PostgresTables


def prune(connections: Connections, gone: Sequence[Row], max_bytes: int | None) -> Pruned:
    """Remove `gone`, then the oldest runs until what is kept takes no more than `max_bytes`.

    Runs that a process has stay. Sizes are those of headers, records and values: the server gives
    pages back when it likes. Raises: `StoreError`.
    """
    tables = PostgresTables(connections.ask)
    before = _size(tables)
    removed = _remove(connections, gone)
    if max_bytes is not None:
        removed += _remove(connections, beyond(tables, max_bytes))
    connections.transact(_sweep)
    left = _size(tables)
    return Pruned(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(connections: Connections, gone: Sequence[Row]) -> list[Row]:
    return [row for lot in lots(gone) for row in _remove_lot(connections, lot)]


def _remove_lot(connections: Connections, gone: Sequence[Row]) -> list[Row]:
    """The runs of `gone` that are not there any more, whichever attempt removed them."""
    numbers = [row.no for row in gone]
    query = """DELETE FROM weft_runs WHERE no IN (SELECT run FROM weft_leases
    WHERE run = ANY(%s) AND expires <= clock_timestamp() FOR UPDATE SKIP LOCKED)"""
    connections.ask(query, (numbers,))
    there = connections.ask("SELECT no FROM weft_runs WHERE no = ANY(%s)", (numbers,))
    return [row for row in gone if (row.no,) not in there]


def _sweep(db: Connection) -> None:
    reached = Reached(PostgresTables.within(db))
    reached.add_all()
    db.execute("LOCK TABLE weft_blobs IN SHARE ROW EXCLUSIVE MODE")
    reached.add_all()
    known = {digest for (digest,) in db.execute("SELECT digest FROM weft_blobs")}
    unused = list(known - reached.marks.digests)
    db.execute("DELETE FROM weft_blobs WHERE digest = ANY(%s)", (unused,))


def _size(tables: PostgresTables) -> int:
    reached = Reached(tables)
    reached.add_all()
    return reached.marks.size_bytes
