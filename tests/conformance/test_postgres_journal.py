from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conformance.journal import JournalConformance
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
