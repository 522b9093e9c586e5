"""Reads a whole journal and says what is damaged or missing.

Does not mend it.
"""

from __future__ import annotations

from weft.engine.journal.sqlite.locks import is_locked
from weft.engine.journal.sqlite.losses import losses, orphans
from weft.engine.journal.sqlite.tables import SqliteTables


def complaints(tables: SqliteTables) -> list[str]:
    """What is wrong, in sentences. Raises: `sqlite3.Error` where nothing can be read."""
    db = tables.db
    told = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    told += [
        f"a row of {row[0]} belongs to no run" for row in db.execute("PRAGMA foreign_key_check")
    ]
    told += tables.complaints()
    for row in tables.rows():
        if not is_locked(tables.claim_file(row.no)):
            told += [f"run {row.id!r}: {note}" for note in losses(tables, row).notes]
    return told + list(orphans(tables))
