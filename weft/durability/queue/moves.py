"""Changes of a queued run's state that a SQLite journal makes with its own writes."""

from __future__ import annotations

import sqlite3

from weft.core.ports.queue import QueueState


def move(db: sqlite3.Connection, no: int, state: QueueState) -> None:
    """Set the state of a run whose record goes on or ends; nothing for one that is not queued."""
    db.execute("UPDATE queue SET state = ? WHERE run = ?", (state, no))


def wake(db: sqlite3.Connection, no: int) -> None:
    """Let a run that asks be taken again: there is a signal for it."""
    db.execute("UPDATE queue SET state = 'queued' WHERE run = ? AND state = 'asking'", (no,))
