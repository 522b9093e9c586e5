"""Advisory locks on runs: a session has them, and its end is theirs.

Does not know what is locked. A lock is named by the table of runs, since one database may have
several journals in several schemas, and the number of the run.
"""

from __future__ import annotations

from weft.workflow.postgres.schema import Connection, one


def lock(db: Connection, no: int) -> bool:
    """Take the lock; false: another session has it."""
    query = "SELECT pg_try_advisory_lock(('weft_runs'::regclass::oid::bigint << 32) | %s)"
    return bool(one(db, query, no))


def unlock(db: Connection, no: int) -> None:
    """Give the lock back. Harmless once the connection is closed."""
    if not db.closed:
        query = "SELECT pg_advisory_unlock(('weft_runs'::regclass::oid::bigint << 32) | %s)"
        db.execute(query, (no,))
