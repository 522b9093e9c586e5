"""A result store in one SQLite file, kept between runs and shared by processes."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from weft.core.errors import StoreError
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.store import StoreEntry
from weft.durability.journal.sqlite.tables import make_file, number

T = TypeVar("T")
_OURS = 0x77656674  # "weft" in ASCII, in the file's header
_VERSION = 1
_BUSY_S = 5.0
_HINT = "give the store another path, or move that file away"
_TABLE = """
CREATE TABLE results (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at REAL) WITHOUT ROWID;
CREATE INDEX results_expiry ON results (expires_at) WHERE expires_at IS NOT NULL;
"""


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
                self._connection = _open(self._path)
            return work(self._connection)
        except (sqlite3.Error, OSError) as error:
            raise _store_error(self._path, error) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise _damaged(self._path, str(error)) from error


def _as_json(value: Any) -> str:
    try:
        text = json.dumps(value, allow_nan=False)
        same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"this store holds JSON only: {error}") from error
    if not same:
        raise TypeError("this store holds JSON only: the value does not come back as it was")
    return text


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    make_file(path)
    db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    if number(db, "PRAGMA application_id") != _OURS:
        if number(db, "SELECT count(*) FROM sqlite_master"):
            raise StoreError(f"{path} is a database of another program", hint=_HINT)
        for statement in _TABLE.strip().split("\n"):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_OURS}")
        db.execute(f"PRAGMA user_version = {_VERSION}")
    version = number(db, "PRAGMA user_version")
    db.execute("COMMIT")
    if version != _VERSION:
        raise StoreError(f"{path} has format {version}, this weft knows {_VERSION}", hint=_HINT)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")


def _read(db: sqlite3.Connection, key: str, now: float) -> str | None:
    query = "SELECT value FROM results WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)"
    row = db.execute(query, (key, now)).fetchone()
    return None if row is None else str(row[0])


def _write(
    db: sqlite3.Connection, key: str, text: str, expires_at: float | None, now: float
) -> None:
    db.execute("DELETE FROM results WHERE expires_at <= ?", (now,))
    db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (key, text, expires_at))


def _store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
    if busy:
        return StoreError(
            f"{path} has been locked by another process for {_BUSY_S:g} s", retryable=True
        )
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return _damaged(path, str(error))
    return StoreError(f"{path}: {error}", hint="is there space, and may this user write there?")


def _damaged(path: Path, reason: str) -> StoreError:
    return StoreError(f"{path} is damaged or no store: {reason}", hint=_HINT)
