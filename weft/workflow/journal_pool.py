"""The journal of runs that name none stays open between them: opening it costs more than a run.

Knows files only: a journal on a server is opened and closed with its run.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from weft.core.errors import StoreError
from weft.core.ports.journal import Journal
from weft.workflow.journals import file_of_journal, open_journal


class FileMark(NamedTuple):
    """Which files a journal has: others under the same names are another journal."""

    file: tuple[int, int] | None
    log: tuple[int, int] | None


@dataclass(slots=True)
class PooledJournal:
    """An open journal, which so many runs use.

    `mark`: its files when it was opened, and once it is idle when the last run gave it back.
    """

    path: Path
    journal: Journal
    process: int
    mark: FileMark
    users: int = 1

    def is_still(self, path: Path) -> bool:
        """Whether it is the journal at `path`, and this process may use it."""
        if self.path != path or self.process != os.getpid():
            return False
        now = mark_of(path)
        if self.users:  # the log of a journal that is written to comes and goes
            return now.file == self.mark.file
        return now.file is not None and now == self.mark


class JournalPool:
    """Lends the journal of who names none to one run after another. Keeps one open that is idle.

    A file that was moved, removed or put in its place by others is opened anew, and so is what a
    parent process had open.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: PooledJournal | None = None
        self._inherited: list[PooledJournal] = []  # closing them would disturb the parent process
        atexit.register(self.close)

    def lend(self) -> PooledJournal:
        """The journal that the environment names, or the user's own; see `open_journal`.

        Raises: `StoreError`.
        """
        path = file_of_journal()
        with self._lock:
            latest = self._latest
            if path is not None and latest is not None and latest.is_still(path):
                latest.users += 1
                return latest
            self._forget()
            place, journal = path or Path(), open_journal()
            made = PooledJournal(place, journal, os.getpid(), mark_of(place))
            if path is not None and sys.platform != "win32":  # which removes no file that is open
                self._latest = made
            return made

    def give_back(self, lent: PooledJournal) -> None:
        """A run needs it no more."""
        with self._lock:
            lent.users -= 1
            if lent.users or lent.process != os.getpid():
                return
            if lent is self._latest:
                lent.mark = mark_of(lent.path)
            else:
                lent.journal.close()

    def close(self) -> None:
        """Close what is open and idle."""
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
"""That of this process."""
