"""Bytes on the disk: they grow with what is new, and shrink when runs are removed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from tests.durability.journal.lock_timeouts import PATIENCE_S
from weft.core.calls import CallId, ModelCalled, ToolReturned
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.durability.journal.rows import as_text, unpacked, unsealed
from weft.durability.journal.sqlite import SqliteJournal

NODE = NodeId("chat")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.durability.journal.sqlite.tables.BUSY_S", PATIENCE_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def said(number: int) -> Message:
    """A message of 400 bytes that no compression makes smaller than half of that."""
    return Message("user", Random(number).randbytes(200).hex())


def conversation(path: Path, turns: int) -> int:
    """The bytes of a journal that keeps all requests of a conversation."""
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        records = []
        for turn in range(turns):
            request = ModelRequest(tuple(said(n) for n in range(2 * turn + 1)))
            records.append(ModelCalled(NODE, 1, CallId("m"), "m", request, float(turn)))
            journal.append(RUN, records[-1:])
        assert read(journal) == records
    return path.stat().st_size


def test_a_conversation_of_fifty_turns_keeps_each_message_once(path: Path) -> None:
    empty = conversation(path.with_name("empty.sqlite"), 0)
    twenty_five = conversation(path.with_name("half.sqlite"), 25) - empty
    fifty = conversation(path, 50) - empty
    everything = sum(len(said(n).content) for turn in range(50) for n in range(2 * turn + 1))
    assert everything > 900_000
    assert fifty < everything / 8
    assert fifty < 2.5 * twenty_five
    with closing(SqliteJournal(path)) as journal:
        rows = journal._db.execute("SELECT body FROM blobs").fetchall()
        batches = journal._db.execute("SELECT body FROM batches").fetchall()
    everywhere = [
        *(as_text(unpacked(body)) for (body,) in rows),
        *(unsealed(b) for (b,) in batches),
    ]
    for number in range(99):
        assert sum(text.count(said(number).content) for text in everywhere) == 1


def test_equal_values_of_many_runs_are_kept_once(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        for number in range(20):
            run = RunId(f"run-{number}")
            journal.begin(header(run))
            journal.append(run, [large(n) for n in range(20)])
        assert journal._db.execute("SELECT count(*) FROM blobs").fetchone() == (20,)


def test_ten_megabytes_are_fine(path: Path) -> None:
    value = "tide " * 2_000_000
    record = ToolReturned(NODE, 1, CallId("t"), {"text": value}, None, "done", 1.0)
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        journal.append(RUN, [record, record])
        assert read(journal) == [record, record]
        assert not journal.check()
    assert path.stat().st_size < 1_000_000


def test_a_journal_that_is_pruned_stays_small(path: Path) -> None:
    sizes = []
    with closing(SqliteJournal(path)) as journal:
        for number in range(12):
            run = RunId(f"run-{number}")
            journal.begin(header(run)).release()
            claim = journal.claim(run)
            noise = Random(number).randbytes(100_000).hex()
            journal.append(run, [large(number), large(0), line(number)])
            record = ToolReturned(NODE, 1, CallId("t"), noise, None, "done", 1.0)
            journal.append(run, [record])
            claim.release()
            pruned = journal.prune(keep=3)
            assert pruned.left_bytes == path.stat().st_size
            sizes.append(pruned.left_bytes)
            for summary in journal.runs():
                assert len(read(journal, summary.run)) == 4
            assert not journal.check()
        assert max(sizes) <= sizes[3] + 8192
        assert set(journal.prune(keep=0).runs) == {"run-9", "run-10", "run-11"}
        assert journal._db.execute("SELECT count(*) FROM blobs").fetchone() == (0,)


def test_more_runs_than_a_process_may_open_files_can_be_removed(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        for number in range(250):
            journal.begin(header(RunId(f"run-{number}"))).release()
        before = len(list(Path("/dev/fd").iterdir())) if Path("/dev/fd").exists() else 0
        with few_files(before + 120):
            assert len(journal.prune(keep=1).runs) == 249
        assert [summary.run for summary in journal.runs()] == ["run-249"]


@contextmanager
def few_files(number: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PRUNER = """
import sys
from tests.durability.journal.lock_timeouts import be_patient
from weft.durability.journal.sqlite import SqliteJournal
be_patient()
journal = SqliteJournal(sys.argv[1])
print("ready", flush=True)
while True:
    journal.prune(keep=2)
"""


def test_pruning_by_another_process_takes_nothing_that_is_needed(path: Path) -> None:
    """Values are used again by new records while somebody removes those that nobody uses."""
    with closing(SqliteJournal(path)) as journal:
        command = [sys.executable, "-c", PRUNER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pruner:
            try:
                assert pruner.stdout is not None
                pruner.stdout.readline()
                for number in range(60):
                    run = RunId(f"run-{number}")
                    claim = journal.begin(header(run))
                    for shared in range(5):
                        journal.append(run, [large(shared), large(number)])
                    assert len(read(journal, run)) == 10
                    claim.release()
                patience = iter(range(12_000))
                while len(journal.runs()) > 2:  # it may have stood still all the time
                    assert next(patience, None) is not None
                    time.sleep(0.01)
                assert pruner.poll() is None
            finally:
                pruner.kill()
        assert not journal.check()


def test_a_run_that_is_removed_while_it_is_read_says_so(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal, closing(SqliteJournal(path)) as other:
        claim = journal.begin(header())
        for number in range(200):
            journal.append(RUN, [large(number)])
        claim.release()
        reading = iter(other.records(RUN))
        next(reading)
        journal.prune(runs=[RUN])
        with pytest.raises(StoreError, match="missing"):
            list(reading)


def test_threads_share_a_journal(path: Path) -> None:
    failures: list[Exception] = []

    def write(run: RunId) -> None:
        try:
            for number in range(50):
                journal.append(run, [line(number), large(number)])
                assert len(read(journal, run)) == 2 * number + 2
        except Exception as error:
            failures.append(error)

    runs = [RunId(f"run-{number}") for number in range(4)]
    with closing(SqliteJournal(path)) as journal:
        for run in runs:
            journal.begin(header(run))
        threads = [threading.Thread(target=write, args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert not journal.check()
