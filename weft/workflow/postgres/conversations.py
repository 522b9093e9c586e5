"""Threads of messages in a PostgreSQL journal. Each function is repeatable in a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports.conversations import StoredThread
from weft.workflow.postgres.connections import Connection, rows_of


def read_thread(db: Connection, thread: str) -> StoredThread:
    """A thread: the summary is read first, so that it covers messages that are read."""
    query = "SELECT body, covers FROM weft_summaries WHERE thread = %s"
    summary = rows_of(db, query, (thread,))
    query = "SELECT body FROM weft_messages WHERE thread = %s ORDER BY number"
    bodies = tuple(body for (body,) in rows_of(db, query, (thread,)))
    return StoredThread(bodies, *summary[0]) if summary else StoredThread(bodies)


def append_to_thread(
    db: Connection, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None
) -> bool:
    """Append `messages`; see `ConversationStore`. One transaction at a time has the thread."""
    db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", (thread,))
    query = "SELECT FROM weft_messages WHERE thread = %s AND key = %s LIMIT 1"
    if rows_of(db, query, (thread, key)):
        return False
    query = "SELECT coalesce(max(number), 0) FROM weft_messages WHERE thread = %s"
    last = rows_of(db, query, (thread,))[0][0]
    rows = [(thread, last + n, body, key, n) for n, body in enumerate(messages, 1)]
    with db.cursor() as cursor:
        cursor.executemany("INSERT INTO weft_messages VALUES (%s, %s, %s, %s, %s)", rows)
    if summary is not None:
        query = """INSERT INTO weft_summaries VALUES (%s, %s, %s) ON CONFLICT (thread) DO UPDATE
        SET covers = excluded.covers, body = excluded.body
        WHERE excluded.covers > weft_summaries.covers"""
        db.execute(query, (thread, summary[1], summary[0]))
    return True


def delete_thread(db: Connection, thread: str) -> bool:
    """Remove a thread. False also where an attempt that committed unseen has removed it."""
    db.execute("DELETE FROM weft_summaries WHERE thread = %s", (thread,))
    return db.execute("DELETE FROM weft_messages WHERE thread = %s", (thread,)).rowcount > 0
