"""Threads of messages in a SQLite journal."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

from weft.core.ports.conversations import StoredThread, ThreadSummary


def threads(db: Connection) -> list[ThreadSummary]:
    """All threads, by id."""
    query = """SELECT thread, count(*), coalesce(max(covers), 0)
    FROM messages LEFT JOIN summaries USING (thread) GROUP BY thread ORDER BY thread"""
    return [ThreadSummary(*row) for row in db.execute(query)]


def read_thread(db: Connection, thread: str) -> StoredThread:
    """A thread, within a transaction of the caller."""
    query = "SELECT body FROM messages WHERE thread = ? ORDER BY number"
    bodies = tuple(body for (body,) in db.execute(query, (thread,)))
    query = "SELECT body, covers FROM summaries WHERE thread = ?"
    found = db.execute(query, (thread,)).fetchone()
    return StoredThread(bodies) if found is None else StoredThread(bodies, *found)


def append_to_thread(
    db: Connection, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None
) -> bool:
    """Append `messages`, within a transaction of the caller; see `ConversationStore`."""
    query = "SELECT 1 FROM messages WHERE thread = ? AND key = ?"
    if db.execute(query, (thread, key)).fetchone() is not None:
        return False
    query = "SELECT coalesce(max(number), 0) FROM messages WHERE thread = ?"
    last = db.execute(query, (thread,)).fetchone()[0]
    rows = [(thread, last + n, body, key, n) for n, body in enumerate(messages, 1)]
    db.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", rows)
    if summary is not None:
        query = """INSERT INTO summaries VALUES (?, ?, ?) ON CONFLICT (thread) DO UPDATE
        SET covers = excluded.covers, body = excluded.body WHERE excluded.covers > covers"""
        db.execute(query, (thread, summary[1], summary[0]))
    return True


def delete_thread(db: Connection, thread: str) -> bool:
    """Remove a thread, within a transaction of the caller."""
    db.execute("DELETE FROM summaries WHERE thread = ?", (thread,))
    return db.execute("DELETE FROM messages WHERE thread = ?", (thread,)).rowcount > 0
