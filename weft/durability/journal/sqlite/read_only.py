"""A journal that may not be written, or whose disk is full: how it is read all the same.

Writes nothing. Where nobody seems to write, SQLite is told so and needs no files beside it; that
somebody did all the same is noticed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.core.errors import StoreError
from weft.durability.journal.sqlite.faults import BUSY_S, is_denied, is_full
from weft.durability.journal.sqlite.tables import check_format

_LOGS = ("-wal", "-journal")  # what is not yet in the file itself
_Stamp = tuple[tuple[int, int, int], ...]


class ReadOnlyConnection:
    """A connection `db` that only reads. Raises: `StoreError`, `sqlite3.Error`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.db, self._stamp = _connected(path)

    def renew(self) -> bool:
        """Whether somebody wrote, so that `db` is another connection now."""
        if not self._disturbed():
            return False
        before = self.db
        self.db, self._stamp = _connected(self._path)
        before.close()
        return True

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Raises: `StoreError` where somebody wrote meanwhile: what was read may be half of it."""
        try:
            yield
        finally:
            if self._disturbed():
                told = f"the journal {self._path} was written to while it was read"
                raise StoreError(told, hint="nothing is lost; try again", retryable=True)

    def _disturbed(self) -> bool:
        return self._stamp is not None and self._stamp != _stamp(self._path)


def reading_will_do(path: Path, error: StoreError) -> bool:
    """Whether `error` kept the journal at `path` from being opened, but perhaps not from reading.

    It is what `faults` made of the system's own.
    """
    kept = is_denied(error.__cause__) or is_full(error.__cause__)
    return kept and os.access(path, os.F_OK)


def only_read(error: StoreError) -> StoreError:
    """What a writer is told of a journal that could not be opened otherwise because of `error`."""
    if is_full(error.__cause__):
        return StoreError(error.message, hint=error.hint, retryable=True)
    hint = "let this user write to the file and to its folder, or copy it and name the copy instead"
    return StoreError(f"{error.message}; it can only be read", hint=hint)


def _connected(path: Path) -> tuple[sqlite3.Connection, _Stamp | None]:
    """A connection, and by what to see that somebody wrote where SQLite does not look for it."""
    if not os.access(path, os.R_OK):
        raise StoreError(f"the journal {path} cannot be read", hint="may this user read that file?")
    stamp = _stamp(path)
    logs = [log for end in _LOGS if _size(log := path.with_name(path.name + end))]
    how = "mode=ro" if logs else "mode=ro&immutable=1"
    db = sqlite3.connect(
        f"{path.as_uri()}?{how}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        check_format(db, path)
    except sqlite3.Error as error:
        db.close()
        if logs and (is_denied(error) or is_full(error)):
            raise _unmerged(path, logs[0]) from error
        raise
    except BaseException:
        db.close()
        raise
    return db, None if logs else stamp


def _unmerged(path: Path, log: Path) -> StoreError:
    told = f"the newest records of the journal {path} are in {log.name}, which cannot be read there"
    hint = (
        f"copy {path.name} and all beside it that begins so to a folder with room that you may "
        "write to, and name the copy"
    )
    return StoreError(told, hint=hint)


def _stamp(path: Path) -> _Stamp:
    return tuple(_state(path.with_name(path.name + end)) for end in ("", *_LOGS))


def _state(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def _size(path: Path) -> int:
    return _state(path)[1]
