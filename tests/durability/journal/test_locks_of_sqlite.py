"""SQLite's own locks, which end when a process closes the file for any reason, hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, line, read
from weft.durability.journal.sqlite import SqliteJournal

PASSER_BY = """
import sys
from tests.durability.journal.lines import RUN, read
from weft.durability.journal.sqlite import SqliteJournal
journal = SqliteJournal(sys.argv[1])
print(len(read(journal)))
journal.close()
"""
MEANWHILE: dict[str, Callable[[SqliteJournal], object]] = {
    "check": lambda journal: journal.check(),
    "prune": lambda journal: journal.prune(keep=5),
    "open": lambda journal: SqliteJournal(journal.path).close(),
    "open to read": lambda journal: SqliteJournal(journal.path, to_read=True).close(),
}


def passed_by(path: Path) -> int:
    """How many records another process finds. When it ends, it may think that it was the last."""
    command = [sys.executable, "-c", PASSER_BY, str(path)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_no_other_process_takes_the_log_of_a_journal_that_is_open(
    tmp_path: Path, meanwhile: str
) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        journal.append(RUN, [line(1)])
        MEANWHILE[meanwhile](journal)
        assert passed_by(path) == 1
        journal.append(RUN, [line(2)])
        assert passed_by(path) == 2  # not written to a log that is no longer there
        assert len(read(journal)) == 2
