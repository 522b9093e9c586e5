"""Reads a whole journal and says what is damaged or missing.

Does not mend it.
"""

from __future__ import annotations

import sqlite3

from weft.engine.journal.rows import Values, wrong_run, wrong_values
from weft.engine.journal.sqlite.reading import batches_of, fetching, header_of, rows


def complaints(db: sqlite3.Connection) -> list[str]:
    """What is wrong, in sentences. Raises: `sqlite3.Error` where nothing can be read."""
    told = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    told += [
        f"a row of {row[0]} belongs to no run" for row in db.execute("PRAGMA foreign_key_check")
    ]
    told += wrong_values(db.execute("SELECT digest, body FROM blobs"))
    values = Values(fetching(db))
    for row in rows(db, None, None):
        wrong = wrong_run(header_of(db, row), batches_of(db, row), values.get)
        told += [f"run {row.id!r}: {text}" for text in wrong]
    return told
