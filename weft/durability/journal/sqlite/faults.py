"""Errors of SQLite and the system as typed errors that say what to do."""

from __future__ import annotations

import errno
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.core.errors import StoreError
from weft.durability.journal.refusals import at_limit, full, too_full_to_prune

BUSY_S = 5.0
MOVE_IT = "give the journal another path, or move that file away: `weft runs` then begins a new one"
_SOME_BYTES = 1_000_000  # extra space for removing: an index, and a log of small steps
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAX_WRITE = 1 << 16  # the most that SQLite writes at once
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_DENIED = (
    "may this user write to that file, to those beside it and to its folder? Else name another "
    "journal, or a copy of this one"
)


class JournalInUse(StoreError):
    """Another thread of this process is using the journal, and this one does not wait."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another thread is using the journal {path}", retryable=True)


class DiskWait(StoreError):
    """The append has to be synced, and its caller does not wait."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"the journal {path} has to wait for the disk", retryable=True)


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turn an error of the database at `path` into a `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error) from error


@contextmanager
def faults_of_pruning(path: Path) -> Iterator[None]:
    """`faults` for pruning, which may itself run out of space."""
    try:
        with faults(path):
            yield
    except StoreError as error:
        if not is_full(error.__cause__):
            raise
        log = path.with_name(f"{path.name}-wal")
        needed = log.stat().st_size if log.exists() else 0  # the log's content needs no more
        raise too_full_to_prune(f"the journal {path}", needed + _SOME_BYTES) from error.__cause__


def store_error(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """The typed error; `retryable` when it may pass."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        message = f"the journal {path} has been locked by another process for {BUSY_S:g} s"
        return StoreError(message, hint="nothing is lost; try again", retryable=True)
    if is_full(error):
        return full(f"the journal {path}")
    if _is_at_limit(path, error):
        return at_limit(f"the journal {path}")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, str(error))
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    if is_denied(error):
        return StoreError(f"the journal {path} cannot be written: {reason}", hint=_DENIED)
    if isinstance(error, sqlite3.DatabaseError) and not code:
        return damaged(path, str(error))
    return StoreError(f"the journal {path}: {reason}", hint=_DENIED)


def is_full(error: BaseException | None) -> bool:
    """Whether there was no room on the disk."""
    code = getattr(error, "sqlite_errorcode", 0)
    no_index = code == sqlite3.SQLITE_IOERR_SHMSIZE  # the index file that all processes share
    return (
        no_index or code & 0xFF == sqlite3.SQLITE_FULL or getattr(error, "errno", None) in _NO_SPACE
    )


def _is_at_limit(path: Path, error: BaseException) -> bool:
    """Whether a file has reached its size limit; SQLite reports that as a broken disk."""
    if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_IOERR_WRITE:
        return False
    limit = _largest_file()
    files = (path, path.with_name(f"{path.name}-wal"))
    sizes = (file.stat().st_size for file in files if file.exists())
    return limit >= 0 and any(size + _MAX_WRITE >= limit for size in sizes)


def _largest_file() -> int:
    """The largest file in bytes that this process may write; negative: no limit."""
    if sys.platform == "win32":
        return -1
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return -1 if limit == resource.RLIM_INFINITY else limit


def is_denied(error: BaseException | None) -> bool:
    """Whether the file, or its folder, may not be written."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    denying = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
    return code in denying or getattr(error, "errno", None) in _NOT_ALLOWED


def damaged(path: Path, reason: str) -> StoreError:
    """The error for a file that is damaged or of another format."""
    return StoreError(f"the journal {path} is damaged or no journal: {reason}", hint=MOVE_IT)
