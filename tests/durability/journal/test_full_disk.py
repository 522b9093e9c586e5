"""A disk without room: runs are read, and removed with as little as there is; nothing is lost."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.durability.journal.lines import header, large, line, read
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import PruneResult
from weft.durability.journal.sqlite import SqliteJournal, pruning

RUNS = [RunId(f"run-{number}") for number in range(8)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def filled(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        for number, run in enumerate(RUNS):
            claim = journal.begin(header(run))
            for part in range(30):
                journal.append(run, [line(part), large(100 * number + part)])
            claim.release()


class Transactions:
    """Those of pruning. For the first `full` of them there is no room."""

    def __init__(self, full: int) -> None:
        self._full = full
        self.done = 0

    @contextmanager
    def __call__(self, db: sqlite3.Connection) -> Iterator[None]:
        before = db.total_changes
        db.execute("BEGIN IMMEDIATE")
        yield
        if self._full:
            self._full -= 1
            db.execute("ROLLBACK")
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        db.execute("COMMIT")
        self.done += db.total_changes > before


def pruned(path: Path, monkeypatch: pytest.MonkeyPatch, full: int) -> tuple[PruneResult, int]:
    """What removing all runs but two comes to, in how many transactions."""
    filled(path)
    transactions = Transactions(full)
    monkeypatch.setattr(pruning, "transaction", transactions)
    with closing(SqliteJournal(path)) as journal:
        found = journal.prune(keep=2)
        assert not journal.check()
        assert [summary.run for summary in journal.runs()] == [RUNS[7], RUNS[6]]
        assert len(read(journal, RUNS[7])) == 60
    return found, transactions.done


def test_where_there_is_little_room_the_same_goes_in_small_steps(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, few = pruned(path, monkeypatch, full=0)
    little, many = pruned(path.with_name("full.sqlite"), monkeypatch, full=1)
    assert few == 2  # the runs, and their values
    assert many == 6 + 180 // 20
    assert little == at_once
    assert set(little.runs) == set(RUNS[:6])
    assert little.left_bytes == path.stat().st_size


def test_where_there_is_no_room_for_that_either_it_says_how_much_it_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match=r"not even to remove runs.*nothing is lost") as caught:
        pruned(path, monkeypatch, full=2)
    assert caught.value.retryable
    assert "free 1 MB there" in (caught.value.hint or "")
    assert "another disk" in (caught.value.hint or "")
    monkeypatch.undo()
    with closing(SqliteJournal(path)) as journal:
        assert len(journal.runs()) == len(RUNS)
        assert not journal.check()


def test_removing_a_run_takes_no_room_for_a_claim(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path)

    def full(descriptor: int, text: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(SqliteJournal(path)) as journal:
        monkeypatch.setattr(os, "write", full)
        assert len(journal.prune(keep=2).runs) == 6


# A real disk that is full: a file system in memory that only this program sees.
DISK = """
import os, re, subprocess, sys
from contextlib import closing
from pathlib import Path
from random import Random
from tests.durability.journal.lines import header, read
from weft.core.calls import CallId, ToolReturned
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.durability.journal.sqlite import SqliteJournal

folder = Path(sys.argv[1])
mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(folder)])
if mounted.returncode:
    sys.exit(77)
path, rng = folder / "journal.sqlite", Random(1)
noise = [ToolReturned(NodeId("n"), 1, CallId("t"), rng.randbytes(2000).hex(), None, "done", 1.0)
         for _ in range(8000)]
kept = {}

def record(journal, runs):
    for number in runs:
        run = RunId(f"run-{number}")
        claim = journal.begin(header(run))
        kept[run] = []
        try:
            for _ in range(25):
                batch = [noise.pop()]
                journal.append(run, batch)
                kept[run] += batch
        finally:
            claim.release()

def fill(bytes_left):
    with (folder / "other").open("ab", buffering=0) as other:
        size = 1 << 20
        while size:
            try:
                other.write(bytes(size))
            except OSError:
                size //= 2
        other.truncate(other.tell() - bytes_left)

def whole(journal):
    found = {summary.run: read(journal, summary.run) for summary in journal.runs()}
    assert all(found[run] == kept[run] for run in found)
    assert not journal.check()
    return len(found)

def refused(act):
    try:
        act()
    except StoreError as error:
        assert error.retryable, error
        return str(error)
    raise AssertionError("it was carried out")
"""
BY_OTHERS = """
with closing(SqliteJournal(path)) as journal:
    record(journal, range(25))
fill(0)
assert "no space is left" in refused(lambda: SqliteJournal(path))
with closing(SqliteJournal(path, to_read=True)) as journal:
    assert whole(journal) == 25
    assert "no space is left" in refused(lambda: journal.prune(keep=2))
(folder / "other").unlink()
fill(1_000_000)
with closing(SqliteJournal(path)) as journal:
    assert len(journal.prune(keep=2).runs) == 23
    assert whole(journal) == 2
assert path.stat().st_size < 1_000_000
"""
BY_THE_JOURNAL = r"""
with (folder / "other").open("wb") as other:
    other.write(bytes(8 << 20))
with closing(SqliteJournal(path)) as journal:
    said = refused(lambda: record(journal, range(1000)))
    assert "no space is left" in said
    number = len(kept)
    for _ in range(3):
        said = refused(lambda: journal.prune(keep=2))
        assert "not even to remove runs" in said, said
        assert whole(journal) == number
    told = 1_000_000 * int(re.search(r"free (\d+) MB there", said)[1])
    os.truncate(folder / "other", (8 << 20) - told)
    assert len(journal.prune(keep=2).runs) == number - 2
    assert whole(journal) == 2
assert path.stat().st_size < 1_000_000
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no unshare")
@pytest.mark.parametrize("program", [BY_OTHERS, BY_THE_JOURNAL])
def test_on_a_disk_that_is_really_full_nothing_is_lost(tmp_path: Path, program: str) -> None:
    apart = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "-m"]
    command = [*apart, sys.executable, "-c", DISK + program, str(tmp_path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    except FileNotFoundError:
        pytest.skip("nothing here gives a process file systems of its own")
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("this process may not mount file systems")
    assert done.returncode == 0, done.stderr
