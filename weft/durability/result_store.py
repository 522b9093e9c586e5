"""A result store in one SQLite file, kept between runs and shared by processes."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from weft.core.errors import StoreError
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.store import StoreEntry
from weft.durability.database_file import (
    DatabaseFormat,
    damaged_file,
    database_error,
    open_database,
)

T = TypeVar("T")
_FORMAT = DatabaseFormat(
    "store",
    mark=0x77656674,  # "weft" in ASCII
    version=1,
    statements=(
        """CREATE TABLE results (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at REAL)
        WITHOUT ROWID""",
        "CREATE INDEX results_expiry ON results (expires_at) WHERE expires_at IS NOT NULL",
    ),
)


class SqliteStore:
    """Implements `ResultStore` in the file `path`, which is created when it is missing (mode 0600).

    Values must survive JSON unchanged: None, booleans, finite numbers, strings, lists and dicts
    with string keys. Others raise `TypeError`.
    """

    def __init__(self, path: Path | str, clock: Clock | None = None) -> None:
        self._path = Path(path)
        self._clock = clock or SystemClock()
        # SQLite blocks, and a connection works best in one thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weft-store")
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def get(self, key: str) -> StoreEntry | None:
        now = self._clock.wall().timestamp()
        text = await self._in_thread(lambda db: _read(db, key, now))
        return None if text is None else StoreEntry(self._parsed(text))

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        text = _as_json(value)
        now = self._clock.wall().timestamp()
        expires_at = None if ttl_s is None else now + ttl_s
        await self._in_thread(lambda db: _write(db, key, text, expires_at, now))

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
            self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise StoreError(f"the store {self._path} is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._guarded, work)

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = open_database(self._path, _FORMAT)
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            raise database_error(self._path, _FORMAT, error) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise damaged_file(self._path, _FORMAT, str(error)) from error


def _as_json(value: Any) -> str:
    try:
        text = json.dumps(value, allow_nan=False)
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"this store holds JSON only: {error}") from error
    if not same:
        raise TypeError("this store holds JSON only: the value does not come back as it was")
    return text


def _read(db: sqlite3.Connection, key: str, now: float) -> str | None:
    query = "SELECT value FROM results WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)"
    row = db.execute(query, (key, now)).fetchone()
    return None if row is None else str(row[0])


def _write(
    db: sqlite3.Connection, key: str, text: str, expires_at: float | None, now: float
) -> None:
    db.execute("DELETE FROM results WHERE expires_at <= ?", (now,))
    db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (key, text, expires_at))
