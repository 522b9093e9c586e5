"""Claims of runs: what a process needs to write to one, and runs that are taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from weft.durability.journal.sqlite.batch_writer import (
    ClaimedRun,
    PreparedBatch,
    insert,
    synced,
    transaction,
)
from weft.durability.journal.sqlite.locks import FileLock
from weft.durability.journal.sqlite.once_log import (
    OnceEntry,
    OnceLog,
    OnceState,
    losses,
    read_once_file,
)
from weft.durability.journal.sqlite.tables import SqliteTables, number
from weft.durability.journal.tables import RunRow


def claim_run(
    tables: SqliteTables, row: RunRow, lock: FileLock, wall: Callable[[], datetime]
) -> ClaimedRun:
    """Claim the run of `row` under `lock`. Raises: `sqlite3.Error`, `OSError`, `StoreError`."""
    db = tables.db
    has_letters = number(db, "SELECT count(*) FROM letters WHERE run = ?", row.no) > 0
    if has_letters:
        db.execute("UPDATE letters SET taken = 0 WHERE run = ?", (row.no,))
    missing, path = losses(tables, row), tables.once_file(row.no)
    before, progress = read_once_file(path) or OnceState(row.id), tables.progress_of(row)
    seq = tables.last_seq(row)
    chain = tables.chain_at(row, seq)
    entries = tuple(e for e in before.entries if tables.chain_at(row, e.seq) == e.chain)
    state = OnceState(row.id, seq, chain, entries, missing.notes, missing.unsure)
    batch = None
    if missing.calls:
        batch = PreparedBatch(row.no, seq, chain, progress.part, missing.calls)
        added = (OnceEntry(batch.seq, batch.chain, call) for call in missing.calls)
        state = replace(state, seq=batch.seq, chain=batch.chain, entries=(*entries, *added))
    # The file comes first: a claim after a crash in between repeats the rest.
    run = ClaimedRun(row.no, seq, progress, lock, OnceLog(path, state), chain, has_letters)
    try:
        if batch is not None:
            with synced(db):
                insert(db, run, batch, wall)
        if not row.logged or missing.notes:
            query = "UPDATE runs SET logged = 1, end_seq = NULL WHERE no = ?"
            db.execute(query, (row.no,))
    except BaseException:
        run.once.close()
        raise
    return run


def withdraw_run(tables: SqliteTables, run: ClaimedRun) -> None:
    """Remove a claimed run without records, and end the claim. Raises: `sqlite3.Error`."""
    with transaction(tables.db):
        tables.db.execute("DELETE FROM runs WHERE no = ?", (run.no,))
    run.once.close()
    run.once.remove()
    run.lock.release()
