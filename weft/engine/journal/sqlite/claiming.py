"""Taking a run to go on with it: what it lacks that is known beside the database is added first.

Does not know who may take it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from weft.engine.journal.sqlite.locks import FileLock
from weft.engine.journal.sqlite.losses import losses
from weft.engine.journal.sqlite.once import Entry, OnceLog, OnceState, read
from weft.engine.journal.sqlite.schema import number
from weft.engine.journal.sqlite.tables import SqliteTables
from weft.engine.journal.sqlite.writing import Held, Prepared, insert, synced
from weft.engine.journal.tables import Row


def claimed(tables: SqliteTables, row: Row, lock: FileLock, wall: Callable[[], datetime]) -> Held:
    """The run of `row`, which `lock` locks. Raises: `sqlite3.Error`, `OSError`, `StoreError`."""
    db = tables.db
    given = number(db, "SELECT count(*) FROM letters WHERE run = ?", row.no) > 0
    if given:
        db.execute("UPDATE letters SET taken = 0 WHERE run = ?", (row.no,))
    missing, path = losses(tables, row), tables.once_file(row.no)
    before, progress = read(path) or OnceState(row.id), tables.progress_of(row)
    seq = tables.last_seq(row)
    chain = tables.chain_at(row, seq)
    known = tuple(each for each in before.entries if tables.chain_at(row, each.seq) == each.chain)
    state = OnceState(row.id, seq, chain, known, missing.notes, missing.unsure)
    batch = None
    if missing.calls:
        batch = Prepared(row.no, seq, chain, progress.part, missing.calls)
        added = (Entry(batch.seq, batch.chain, call) for call in missing.calls)
        state = replace(state, seq=batch.seq, chain=batch.chain, entries=(*known, *added))
    # First beside the database: who finds it half done does it again.
    held = Held(row.no, seq, progress, lock, OnceLog(path, state), chain, given)
    try:
        if batch is not None:
            with synced(db):
                insert(db, held, batch, wall)
        if not row.logged or missing.notes:
            query = "UPDATE runs SET logged = 1, end_seq = NULL WHERE no = ?"
            db.execute(query, (row.no,))
    except BaseException:
        held.once.close()
        raise
    return held
