from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conformance.journal import JournalConformance
from tests.pgbouncer import pgbouncer, pooler
from tests.postgres_server import PostgresServer, postgres_server
from weft.core.ports import Clock

if TYPE_CHECKING:
    from weft.workflow.postgres import PostgresJournal


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class TestPostgresJournal(JournalConformance):
    @pytest.fixture(autouse=True)
    def _database(self, server: PostgresServer) -> None:
        self.server = server

    def make(self, clock: Clock) -> PostgresJournal:
        from weft.workflow.postgres import PostgresJournal

        return PostgresJournal(self.server.database(), clock=clock)


@pytest.fixture(scope="module")
def transactions(server: PostgresServer) -> Iterator[str]:
    """Parameters of an address where each transaction has a session of its own.

    Empty where no pooler is installed: then the pool of the journal has to keep no connection.
    """
    found = pooler()
    if found is None:
        yield ""
        return
    with pgbouncer(server, found) as parameters:
        yield parameters


class TestWithoutSessions(TestPostgresJournal):
    """Each transaction in a session of its own: none leaves anything behind for the next."""

    @pytest.fixture(autouse=True)
    def _pooler(self, transactions: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from psycopg_pool import NullConnectionPool

        from weft.workflow.postgres import connections

        self.parameters = transactions
        if not transactions:
            monkeypatch.setattr(connections, "ConnectionPool", NullConnectionPool)

    def make(self, clock: Clock) -> PostgresJournal:
        from weft.workflow.postgres import PostgresJournal

        address, _, direct = self.server.database().partition("?")
        return PostgresJournal(f"{address}?{self.parameters or direct}", clock=clock)
