"""SQLite's and the system's complaints as typed errors that say what to do.

Does not repair anything.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.core.errors import StoreError
from weft.engine.journal.refusals import full

BUSY_S = 5.0
MOVE_IT = "give the journal another path, or move that file away: `weft runs` then begins a new one"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_DENIED = "may this user write to that file and its folder?"


class JournalInUse(StoreError):
    """Another thread of this process is at the journal, and this one does not wait."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another thread is using the journal {path}", retryable=True)


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the database at `path` into a `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """The typed error; `retryable` when only the moment was wrong."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        told = f"the journal {path} has been locked by another process for {BUSY_S:g} s"
        return StoreError(told, hint="nothing is lost; try again", retryable=True)
    if code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) in _NO_SPACE:
        return full(f"the journal {path}")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, str(error))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"the journal {path} cannot be written: {error}", hint=_DENIED)
    if isinstance(error, sqlite3.DatabaseError) and not code:
        return damaged(path, str(error))
    return StoreError(f"the journal {path}: {error}", hint=_DENIED)


def damaged(path: Path, told: str) -> StoreError:
    """The error for a file that is not what it was."""
    return StoreError(f"the journal {path} is damaged or no journal: {told}", hint=MOVE_IT)
