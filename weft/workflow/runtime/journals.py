"""The journal that runs are recorded in, and the pool that keeps the user's own journal open."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from weft.agents.user_folder import user_folder
from weft.core.errors import StoreError
from weft.core.extras import optional_packages
from weft.core.ports.journal import Journal
from weft.durability.journal.sqlite import SqliteJournal

VARIABLE = "WEFT_JOURNAL"
"""The environment variable with the default journal: a path or an address."""
JournalPlace: TypeAlias = Journal | str | Path
"""A journal, its path, or the address of its server."""
_SERVERS = ("postgresql://", "postgres://")


def open_journal(
    where: str | Path | None = None,
    *,
    make: bool = True,
    to_read: bool = False,
    lease_s: float | None = None,
) -> Journal:
    """The journal at a path, or at the address of a PostgreSQL server; the caller closes it.

    None: the environment variable `WEFT_JOURNAL`, else `journal.sqlite` in `WEFT_HOME` or the
    user's data folder. A missing file is created, unless `make` is False. A read-only file is
    refused, unless it is opened `to_read`: then only writing fails. `lease_s`: on a server, for
    how long the runs of a process that died stay its own; a file frees them at once.

    Raises: `StoreError`.
    """
    place = _named(where)
    if place.startswith(_SERVERS):
        return _on_server(place, lease_s)
    path = Path(place) if place else default_path()
    _check_file(path, make)
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        hint = f"name another journal in {VARIABLE}, or run with durability none"
        message = f"there is no folder {path.parent} for a journal: {error.strerror}"
        raise StoreError(message, hint=hint) from error
    return SqliteJournal(path, to_read=to_read)


@contextmanager
def journal_or_own(given: JournalPlace | None) -> Iterator[tuple[Journal, Journal | None]]:
    """The journal given or named, by default the user's own, and what is opened here, for the run
    to close.

    It is closed here if the block fails. Raises: `StoreError`.
    """
    if given is None or isinstance(given, str | Path):
        journal = own = open_journal(given)
    else:
        journal, own = given, None
    try:
        yield journal, own
    except BaseException:
        if own is not None:
            own.close()
        raise


def file_of_journal(where: str | Path | None = None) -> Path | None:
    """The file of a journal, see `open_journal`; None if it is on a server."""
    place = _named(where)
    if place.startswith(_SERVERS):
        return None
    return (Path(place) if place else default_path()).absolute()


def new_journal_file(where: str | Path | None = None) -> Path | None:
    """The file that a place names, if opening it would begin a journal: plausible, or mistyped.

    None for the user's own journal, which begins with the first run. Raises: `StoreError`.
    """
    file = file_of_journal(where) if _named(where) else None
    return None if file is None or file.exists() else file


def _named(where: str | Path | None) -> str:
    """What names a journal; empty for the user's own. Raises: `StoreError` for another scheme."""
    place = str(where or os.environ.get(VARIABLE) or "")
    scheme, is_address, _ = place.partition("://")
    if is_address and scheme.isalpha() and not place.startswith(_SERVERS):
        hint = "name a file, or a server as postgresql://USER@HOST/DATABASE"
        raise StoreError(f"a journal cannot be at {scheme}://", hint=hint)
    return place


def default_path() -> Path:
    """The file of the default journal, unless the environment names another."""
    return user_folder() / "journal.sqlite"


def _check_file(path: Path, make: bool) -> None:
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        hint = "may this user enter that folder?"
        raise StoreError(f"the journal {path}: {error.strerror}", hint=hint) from error
    if is_folder:
        hint = f"name a file, such as {path / 'journal.sqlite'}"
        raise StoreError(f"the journal {path} is a folder", hint=hint)
    if not make and not is_there:
        hint = "is the path right? `weft run FILE --journal PATH` begins one there"
        raise StoreError(f"there is no journal {path}", hint=hint)


def _on_server(address: str, lease_s: float | None) -> Journal:
    with optional_packages("a journal on a server", StoreError):
        module = import_module("weft.workflow.postgres")
    given = {} if lease_s is None else {"lease_s": lease_s}
    journal: Journal = module.PostgresJournal(address, **given)
    return journal


class FileMark(NamedTuple):
    """The identity of a journal's files; other files of the same names are another journal."""

    file: tuple[int, int] | None
    log: tuple[int, int] | None


@dataclass(slots=True)
class PooledJournal:
    """An open journal, with the number of runs that use it.

    `mark`: its files when it was opened, or, while it is idle, when the last run returned it.
    """

    path: Path
    journal: Journal
    process: int
    mark: FileMark
    users: int = 1

    def is_still(self, path: Path) -> bool:
        """Whether it is still the journal at `path`, and usable in this process."""
        if self.path != path or self.process != os.getpid():
            return False
        now = mark_of(path)
        if self.users:  # writers create and remove the log
            return now.file == self.mark.file
        return now.file is not None and now == self.mark


class JournalPool:
    """Lends a journal to one run after another, and keeps the latest open while it is idle.

    A journal whose file was moved, removed or replaced is reopened, and so is one that a parent
    process opened.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: PooledJournal | None = None
        self._inherited: list[PooledJournal] = []  # closing them would disturb the parent process
        atexit.register(self.close)

    def lend(self, where: str | Path | None = None) -> PooledJournal:
        """The journal at a place, or the default one; see `open_journal`. Raises: `StoreError`."""
        path = file_of_journal(where)
        with self._lock:
            latest = self._latest
            if path is not None and latest is not None and latest.is_still(path):
                latest.users += 1
                return latest
            self._forget()
            place, journal = path or Path(), open_journal(where)
            made = PooledJournal(place, journal, os.getpid(), mark_of(place))
            if path is not None and sys.platform != "win32":  # which removes no file that is open
                self._latest = made
            return made

    def give_back(self, lent: PooledJournal) -> None:
        """Return a journal after a run."""
        with self._lock:
            lent.users -= 1
            if lent.users or lent.process != os.getpid():
                return
            if lent is self._latest:
                lent.mark = mark_of(lent.path)
            else:
                lent.journal.close()

    def close(self) -> None:
        """Close the journal if it is idle."""
        with self._lock, suppress(StoreError):
            self._forget()

    def _forget(self) -> None:
        latest, self._latest = self._latest, None
        if latest is None:
            return
        if latest.process != os.getpid():
            self._inherited.append(latest)
        elif not latest.users:
            latest.journal.close()


def mark_of(path: Path) -> FileMark:
    """The files of a journal as they are now."""
    return FileMark(_identity(path), _identity(path.with_name(f"{path.name}-wal")))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


JOURNALS: Final = JournalPool()
"""The pool of this process."""
