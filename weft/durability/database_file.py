"""Small SQLite databases of weft, each in a file of its own: opening, and their failures."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.core.errors import StoreError
from weft.durability.journal.sqlite.tables import make_file, number

BUSY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class DatabaseFormat:
    """A format of a file. `mark` identifies it in the file's header; `statements` create it.

    `kind` names such a file in messages. `synchronous` is SQLite's setting: FULL survives a power
    failure, NORMAL the death of the process.
    """

    kind: str
    mark: int
    version: int
    statements: Sequence[str]
    synchronous: str = "NORMAL"

    @property
    def hint(self) -> str:
        """The remedy for a file that cannot be used."""
        return f"give the {self.kind} another path, or move that file away"


def open_database(path: Path, form: DatabaseFormat) -> sqlite3.Connection:
    """A connection to the file `path`, which is created when it is missing (mode 0600).

    Raises: `StoreError` for the file of another program or version; `sqlite3.Error`, `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    make_file(path)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path, form)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path, form: DatabaseFormat) -> None:
    db.execute("BEGIN IMMEDIATE")
    if number(db, "PRAGMA application_id") != form.mark:
        if number(db, "SELECT count(*) FROM sqlite_master"):
            raise StoreError(f"{path} is a database of another program", hint=form.hint)
        for statement in form.statements:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {form.mark}")
        db.execute(f"PRAGMA user_version = {form.version}")
    version = number(db, "PRAGMA user_version")
    db.execute("COMMIT")
    if version != form.version:
        known = f"{path} has format {version}, this weft knows {form.version}"
        raise StoreError(known, hint=form.hint)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {form.synchronous}")


def database_error(path: Path, form: DatabaseFormat, error: sqlite3.Error | OSError) -> StoreError:
    """A failure of the file as a `StoreError`; a locked one is retryable."""
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        text = f"{path} has been locked by another process for {BUSY_S:g} s"
        return StoreError(text, retryable=True)
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return damaged_file(path, form, str(error))
    return StoreError(f"{path}: {error}", hint="is there space, and may this user write there?")


def damaged_file(path: Path, form: DatabaseFormat, reason: str) -> StoreError:
    """The error for a file whose content cannot be read."""
    return StoreError(f"{path} is damaged or no {form.kind}: {reason}", hint=form.hint)
