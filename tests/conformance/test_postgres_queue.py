from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conformance.queue import QueueConformance
from tests.pgbouncer import pgbouncer, pooler
from tests.postgres_server import PostgresServer, postgres_server

if TYPE_CHECKING:
    from weft.workflow.postgres import PostgresJournal


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class TestPostgresQueue(QueueConformance):
    @pytest.fixture(autouse=True)
    def _database(self, server: PostgresServer) -> None:
        self.dsn = server.database()

    def open(self) -> PostgresJournal:
        from weft.workflow.postgres import PostgresJournal

        return PostgresJournal(self.dsn, lease_s=3600)

    def expire(self, journal: PostgresJournal) -> None:
        journal.close()


@pytest.fixture(scope="module")
def transactions(server: PostgresServer) -> Iterator[str]:
    """As in `test_postgres_journal`: empty where no pooler is installed."""
    found = pooler()
    if found is None:
        yield ""
        return
    with pgbouncer(server, found) as parameters:
        yield parameters


class TestWithoutSessions(TestPostgresQueue):
    """Each transaction in a session of its own: none leaves anything behind for the next."""

    @pytest.fixture(autouse=True)
    def _pooled(self, _database: None, transactions: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from psycopg_pool import NullConnectionPool

        from weft.workflow.postgres import connections

        if transactions:
            self.dsn = f"{self.dsn.partition('?')[0]}?{transactions}"
        else:
            monkeypatch.setattr(connections, "ConnectionPool", NullConnectionPool)
