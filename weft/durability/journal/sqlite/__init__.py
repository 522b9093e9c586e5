"""A journal in one SQLite file."""

from weft.durability.journal.sqlite.journal import SqliteJournal, set_aside

__all__ = ["SqliteJournal", "set_aside"]
