from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.conformance.result_store import ResultStoreConformance
from weft.core.fakes import MemoryStore
from weft.core.ports import Clock
from weft.engine.store_sqlite import SqliteStore


class TestMemoryStore(ResultStoreConformance):
    def make(self, clock: Clock) -> MemoryStore:
        return MemoryStore(clock)


class TestSqliteStore(ResultStoreConformance):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _folder(cls):
        with TemporaryDirectory() as folder:
            cls.folder, cls.files = Path(folder), 0
            yield

    def make(self, clock: Clock) -> SqliteStore:
        type(self).files += 1
        return SqliteStore(self.folder / f"{self.files}.sqlite", clock)
