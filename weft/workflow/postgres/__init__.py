"""A journal in a PostgreSQL database, for teams. Needs the extra `postgres`."""

from weft.workflow.postgres.journal import PostgresJournal

__all__ = ["PostgresJournal"]
