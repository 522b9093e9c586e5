from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.queue import QueueConformance
from weft.core.errors import StoreError
from weft.core.ports.queue import queue_of
from weft.durability.journal.sqlite import SqliteJournal
from weft.testing import MemoryJournal


class TestSqliteQueue(QueueConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "journal.sqlite"

    def open(self) -> SqliteJournal:
        return SqliteJournal(self.path)

    def expire(self, journal: SqliteJournal) -> None:
        journal.close()  # releases the locks, and writes nothing


def test_a_journal_without_a_queue_says_so() -> None:
    with pytest.raises(StoreError, match="MemoryJournal has no queue"):
        queue_of(MemoryJournal())
