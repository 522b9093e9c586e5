"""Merging SQLite's write-ahead log into the database, beside those who write.

That waits for the disk twice. A writer on an event loop must not: nothing else on that loop could
go on. Does not know what is in the log.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

_PAGES: Final = 500
"""Pages written after which the log is merged. SQLite merges it itself after three times that, in
the writer: so much is written only where the disk does not keep up."""


class LogMerger:
    """Merges the log of the journal at `path`, in a thread, each time that enough is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None

    def written(self, pages: int) -> None:
        """A transaction of so many `pages`, roughly, was committed."""
        self._pages += pages
        if self._pages >= _PAGES and (self._thread is None or not self._thread.is_alive()):
            self._pages = 0
            self._thread = threading.Thread(
                target=self._merge, name="weft-journal-log", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for what is under way."""
        if self._thread is not None:
            self._thread.join()

    def _merge(self) -> None:
        where = f"{self._path.as_uri()}?mode=rw"  # a file that somebody removed stays removed
        with suppress(sqlite3.Error), closing(sqlite3.connect(where, uri=True)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
