from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.journal import JournalConformance
from weft.core.ports import Clock
from weft.durability.journal.sqlite import SqliteJournal
from weft.testing import MemoryJournal


class TestMemoryJournal(JournalConformance):
    def make(self, clock: Clock) -> MemoryJournal:
        return MemoryJournal(clock)


class TestSqliteJournal(JournalConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "deep" / "journal.sqlite"

    def make(self, clock: Clock) -> SqliteJournal:
        return SqliteJournal(self.path, clock=clock)
