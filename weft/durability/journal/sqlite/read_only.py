"""How a journal is read that may not be written, or whose disk is full.

Writes nothing. Where no process seems to write, SQLite opens the file as immutable and needs no
files next to it; a write that happens all the same is detected.
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

_LOGS = ("-wal", "-journal")  # data that is not yet in the file itself
_Stamp = tuple[tuple[int, int, int], ...]


class ReadOnlyConnection:
    """A connection `db` that only reads. Raises: `StoreError`, `sqlite3.Error`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.db, self._stamp = _connected(path)

    def renew(self) -> bool:
        """Reconnect if another process wrote; whether it did."""
        if not self._is_changed():
            return False
        before = self.db
        self.db, self._stamp = _connected(self._path)
        before.close()
        return True

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Raises: `StoreError` where another process wrote meanwhile: the read may be partial."""
        try:
            yield
        finally:
            if self._is_changed():
                message = f"the journal {self._path} was written to while it was read"
                raise StoreError(message, hint="nothing is lost; try again", retryable=True)

    def _is_changed(self) -> bool:
        return self._stamp is not None and self._stamp != _stamp(self._path)


def reading_will_do(path: Path, error: StoreError) -> bool:
    """Whether a journal that `error`, from `faults`, keeps from being opened may still be read."""
    unwritable = is_denied(error.__cause__) or is_full(error.__cause__)
    return unwritable and os.access(path, os.F_OK)


def only_read(error: StoreError) -> StoreError:
    """The error of a writer to a journal that was opened read-only because of `error`."""
    if is_full(error.__cause__):
        return StoreError(error.message, hint=error.hint, retryable=True)
    hint = "let this user write to the file and to its folder, or copy it and name the copy instead"
    return StoreError(f"{error.message}; it can only be read", hint=hint)


def _connected(path: Path) -> tuple[sqlite3.Connection, _Stamp | None]:
    """A connection, and the stamp of the files where SQLite does not detect writes itself."""
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
    text = f"the newest records of the journal {path} are in {log.name}, which cannot be read there"
    hint = (
        f"copy {path.name} and all beside it that begins so to a folder with room that you may "
        "write to, and name the copy"
    )
    return StoreError(text, hint=hint)


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
