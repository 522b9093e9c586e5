"""What a run's steps cost its journal: statements, rows and bytes, and who waits for the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, line, read
from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.events import NodeFinished, NodeStarted, Outcome
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Record
from weft.durability.journal.sqlite import SqliteJournal, batch_writer
from weft.durability.journal.sqlite.locks import holder, locked


def step(number: int) -> list[Record]:
    """What a chain leaves at each of its steps: a node ends, the next one begins."""
    node, after = NodeId(f"node_{number}"), NodeId(f"node_{number + 1}")
    call = CallId("tool:fb1a23defdef#0")
    return [
        ToolCalled(node, 1, call, "step", {"x": 0}, "pure", "", 0.123456789),
        ToolReturned(node, 1, call, 0, None, "done", 0.123456789),
        NodeFinished(node, Outcome("succeeded", 0), 0.123456789),
        NodeStarted(after, 1, 0.123456789, "4c" * 16),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(path)) as made:
        made.begin(header())
        yield made


def statements(journal: SqliteJournal, batches: list[list[Record]]) -> list[str]:
    found: list[str] = []
    journal._db.set_trace_callback(found.append)
    for records in batches:
        journal.append(RUN, records)
    journal._db.set_trace_callback(None)
    return found


def test_a_step_is_one_statement(journal: SqliteJournal) -> None:
    found = statements(journal, [step(number) for number in range(100)])
    assert len(found) == 100
    assert all(text.startswith("INSERT INTO batches") for text in found)


def test_a_step_of_a_thousand_nodes_is_one_row_of_few_bytes(journal: SqliteJournal) -> None:
    records = [record for number in range(1000) for record in step(number)]
    assert len(statements(journal, [records])) == 1
    sizes = [size for (size,) in journal._db.execute("SELECT length(body) FROM batches")]
    assert len(sizes) == 1
    assert sizes[0] < 60 * 1000
    assert read(journal) == records


def test_a_run_begins_with_as_many_statements_after_many_that_failed(
    journal: SqliteJournal,
) -> None:
    def begun(number: int) -> int:
        found: list[str] = []
        journal._db.set_trace_callback(found.append)
        journal.begin(header(RunId(f"run-{number}"))).release()
        journal._db.set_trace_callback(None)
        return len(found)

    counts = {begun(number) for number in range(10, 40)}
    assert len(counts) == 1


def merged(path: Path) -> int:
    """How many batches are in the database itself, without its log."""
    copy = path.with_name("copy.sqlite")
    shutil.copy(path, copy)
    with closing(SqliteJournal(copy)) as journal:
        return int(journal._db.execute("SELECT count(*) FROM batches").fetchone()[0])


def test_the_log_is_merged_beside_whoever_writes(
    path: Path, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_writer, "_PAGES", 40)
    for number in range(39):
        journal.append(RUN, step(number))
    assert journal._checkpointer._thread is None
    journal.append(RUN, step(39))
    journal._checkpointer.close()  # waits for what is under way
    assert merged(path) == 40
    journal.append(RUN, [line(1)])
    assert len(read(journal)) == 161


def test_a_journal_that_was_removed_is_not_made_again_by_its_log(
    path: Path, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_writer, "_PAGES", 1)
    path.unlink()
    journal.append(RUN, step(0))
    journal._checkpointer.close()
    assert not path.exists()


def test_the_file_that_says_who_has_a_run_is_not_cut_where_it_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is cut to nothing is written to the disk at its end, by some file systems."""
    cuts: list[int] = []
    cut = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", lambda file, size: (cuts.append(size), cut(file, size)))
    lock = locked(tmp_path / "claim")
    assert lock is not None
    lock.release()
    assert cuts == []
    (tmp_path / "claim").write_text("what a process that died has left, which is longer than ours")
    lock = locked(tmp_path / "claim")
    assert cuts == [0]
    assert lock is not None
    assert holder(tmp_path / "claim").startswith(f"process {os.getpid()} on ")
    lock.release()
