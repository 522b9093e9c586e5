from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.conformance.result_store import ResultStoreConformance
from weft.core.ports import Clock
from weft.durability.result_store import SqliteStore
from weft.testing import MemoryStore


class TestMemoryStore(ResultStoreConformance):
    def make(self, clock: Clock) -> MemoryStore:
        return MemoryStore(clock)


class TestSqliteStore(ResultStoreConformance):
    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path) -> None:
        self.paths = (tmp_path / f"{number}.sqlite" for number in count())

    def make(self, clock: Clock) -> SqliteStore:
        return SqliteStore(next(self.paths), clock)
