"""A journal in one SQLite file."""

from weft.engine.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
