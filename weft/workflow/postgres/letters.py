"""Letters to the process that has a run, as rows: each is sent once and taken once.

Whoever sends or takes names the attempt, so that one whose answer was lost can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from weft.core.codec import encode
from weft.core.ports.journal import Letter
from weft.engine.journal.blobs import sealed
from weft.engine.journal.rows import letter_in, node_of
from weft.workflow.postgres.connections import Connection, Connections, Rows, rows_of
from weft.workflow.postgres.leases import Lease, last_seq


def send(connections: Connections, no: int, letter: Letter) -> None:
    """Leave a letter for the run `no`. Raises: `StoreError`."""
    query = """INSERT INTO weft_letters (run, node, body, sent) VALUES (%s, %s, %s, %s)
    ON CONFLICT (sent) DO NOTHING"""
    connections.ask(query, (no, node_of(letter), sealed(encode(letter)), uuid4().hex))


def take(connections: Connections, no: int, lease: Lease | None, look: str) -> Sequence[Letter]:
    """Take the letters of the run `no`, with those that an earlier `look` of this name took.

    `lease`: where this process has the run, which is then checked. Raises: `StoreError`.
    """
    waiting = """SELECT FROM weft_letters WHERE run = %s AND taken IN ('', %s) LIMIT 1"""
    if not connections.ask(waiting, (no, look)):  # mostly so, and nothing was written for it
        return []
    query = """WITH found AS (UPDATE weft_letters SET taken = %(look)s
    WHERE run = %(run)s AND taken IN ('', %(look)s)
    RETURNING no, body) SELECT body FROM found ORDER BY no"""

    def write(db: Connection) -> Rows:
        if lease is not None:
            last_seq(db, lease)
        return rows_of(db, query, {"look": look, "run": no})

    return [letter_in(body) for (body,) in connections.transact(write)]
