"""Reads a whole journal and says what is damaged or missing.

Does not mend it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from weft.core.errors import StoreError
from weft.engine.journal.blobs import digest_of, unpacked
from weft.engine.journal.sqlite.reading import SEQ_BITS, Row, Values, batch, header_of, rows


def complaints(db: sqlite3.Connection) -> list[str]:
    """What is wrong, in sentences. Raises: `sqlite3.Error` where nothing can be read."""
    told = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    told += [
        f"a row of {row[0]} belongs to no run" for row in db.execute("PRAGMA foreign_key_check")
    ]
    told += _blobs(db)
    values = Values(db)
    for row in rows(db, None, None):
        told += [f"run {row.id!r}: {text}" for text in _run(db, row, values)]
    return told


def _blobs(db: sqlite3.Connection) -> Iterator[str]:
    for no, digest, body in db.execute("SELECT no, digest, body FROM blobs"):
        try:
            if digest_of(unpacked(body)) != digest:
                yield f"value {no} does not fit its hash"
        except StoreError as error:
            yield f"value {no}: {error.message}"


def _run(db: sqlite3.Connection, row: Row, values: Values) -> Iterator[str]:
    try:
        header_of(db, row.id, values)
    except StoreError as error:
        yield f"its header: {error.message}"
    seq = 0
    query = "SELECT key, part, body FROM batches WHERE key > ? AND key < ? ORDER BY key"
    for key, part, body in db.execute(query, (row.base, row.base + (1 << SEQ_BITS))):
        last = key - row.base
        try:
            first = next(batch(last, part, body, values)).seq
            if first != seq + 1:
                yield f"record {seq + 1} is missing, or there twice"
        except (StoreError, StopIteration) as error:
            yield f"the records from {seq + 1} to {last}: {error}"
        seq = last
