from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def dsn(server: PostgresServer) -> str:
    return server.database()
