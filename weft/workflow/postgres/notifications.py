"""LISTEN on a connection of its own, in a thread; reconnects, and says when it cannot listen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final
from uuid import uuid4

import psycopg

from weft.core.errors import StoreError
from weft.workflow.postgres.connections import Connection, PostgresPool

CHANNEL: Final = "weft_queue"
_POLL_S: Final = 1.0
"""Seconds between two looks where notifications do not arrive, as behind a transaction pooler."""
_CHECK_S: Final = 0.5
"""Seconds after which the thread sees that it was closed."""
_PROVE_S: Final = 2.0
_RETRY_S: Final = 1.0


class NotificationListener:
    """Implements `QueueListener`: calls `wake` at each notification, and after a reconnection.

    Whether notifications arrive is proved by one that it sends itself, through `pool`.
    """

    def __init__(self, pool: PostgresPool, wake: Callable[[], object]) -> None:
        self._pool = pool
        self._wake = wake
        self._proved = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-queue", daemon=True)
        self._thread.start()

    @property
    def poll_s(self) -> float | None:
        return None if self._proved else _POLL_S

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with self._pool.direct() as db:
                    self._listen(db)
            except (StoreError, psycopg.Error):
                pass
            self._proved = False
            self._wake()
            self._closed.wait(_RETRY_S)

    def _listen(self, db: Connection) -> None:
        db.execute(f"LISTEN {CHANNEL}")
        proof = f"proof {uuid4().hex}"
        self._pool.ask("SELECT pg_notify(%s, %s)", (CHANNEL, proof))
        for notice in db.notifies(timeout=_PROVE_S):
            if notice.payload == proof:
                self._proved = True
                break
        self._wake()  # for what came before, and the new `poll_s`
        while not self._closed.is_set():
            if any(not notice.payload.startswith("proof ") for notice in self._waiting(db)):
                self._wake()

    def _waiting(self, db: Connection) -> list[psycopg.Notify]:
        return list(db.notifies(timeout=_CHECK_S, stop_after=1))
