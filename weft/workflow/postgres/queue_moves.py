"""Changes of a queued run's state that the journal makes within its own transactions."""

from __future__ import annotations

from weft.core.ports.queue import QueueState
from weft.workflow.postgres.connections import Connection
from weft.workflow.postgres.notifications import CHANNEL


def lock(db: Connection, no: int) -> None:
    """Lock the queue's row of a run until the transaction ends, if it has one."""
    db.execute("SELECT FROM weft_queue WHERE run = %s FOR UPDATE", (no,))


def wake(db: Connection, no: int) -> None:
    """Let a run that asks be taken again: there is a signal for it. Call it after `lock`."""
    query = """WITH moved AS (UPDATE weft_queue SET state = 'queued'
    WHERE run = %s AND state = 'asking' RETURNING run)
    SELECT pg_notify(%s, id) FROM moved JOIN weft_runs ON no = run"""
    db.execute(query, (no, CHANNEL))


def move(db: Connection, no: int, state: QueueState) -> None:
    """Set the state of a run whose record goes on or ends; nothing for one that is not queued."""
    query = """WITH moved AS (UPDATE weft_queue SET state = %s WHERE run = %s RETURNING run)
    SELECT pg_notify(%s, id) FROM moved JOIN weft_runs ON no = run"""
    db.execute(query, (state, no, CHANNEL))


def notify(db: Connection, run: str) -> None:
    """Notify the listeners, once this transaction is committed."""
    db.execute("SELECT pg_notify(%s, %s)", (CHANNEL, run))
