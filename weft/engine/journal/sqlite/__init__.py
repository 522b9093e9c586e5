"""A journal in one SQLite file."""

from weft.engine.journal.sqlite.aside import set_aside
from weft.engine.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal", "set_aside"]
