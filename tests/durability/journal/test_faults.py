"""What goes wrong with disks and files: typed errors, and nothing lost that was kept."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from weft.core.errors import StoreError, UnknownReference
from weft.core.ids import RunId
from weft.core.ports.journal import Letter, Record
from weft.durability.journal.sqlite import SqliteJournal, faults, set_aside


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(path)) as journal:
        yield journal


def test_a_full_disk_is_told_and_loses_nothing(journal: SqliteJournal) -> None:
    journal.begin(header())
    journal.append(RUN, [line(1), large(1)])
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    kept: list[Record] = [line(1), large(1)]

    def fill() -> None:
        for number in range(2, 1000):
            batch[:] = [line(number), large(number)]
            journal.append(RUN, batch)
            kept.extend(batch)

    batch: list[Record] = []
    with pytest.raises(StoreError, match=r"no space.*weft runs prune") as caught:
        fill()
    assert caught.value.retryable
    assert read(journal) == kept
    with pytest.raises(StoreError, match="no space"):
        journal.begin(header(RunId("run-2" * 2000)))
    journal._db.execute("PRAGMA max_page_count = 1000000")
    journal.append(RUN, batch)
    assert read(journal) == kept + batch
    assert journal.begin(header(RunId("run-3")))
    assert not journal.check()


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such limit")
def test_the_size_that_files_may_have_is_like_a_full_disk(
    journal: SqliteJournal, path: Path
) -> None:
    import resource

    journal.begin(header())
    kept: list[Record] = []
    batch: list[Record] = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with pytest.raises(StoreError, match="ulimit -f") as caught:  # noqa: PT012 - any of them
            for number in range(1000):
                batch = [line(number), large(number)]
                journal.append(RUN, batch)
                kept += batch
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.retryable
    journal.append(RUN, batch)
    assert read(journal) == kept + batch
    assert not journal.check()


def test_a_disk_without_room_for_a_claim_is_told(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, text: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StoreError, match="no space"):
            journal.begin(header())
    journal.begin(header()).release()
    journal.claim(RUN)


def test_a_locked_journal_is_told_and_loses_nothing(journal: SqliteJournal, path: Path) -> None:
    journal.begin(header())
    journal._db.execute("PRAGMA busy_timeout = 20")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for batch in ([line(1)], [large(1)]):
            with pytest.raises(StoreError, match="locked by another process") as caught:
                journal.append(RUN, batch)
            assert caught.value.retryable
        with pytest.raises(StoreError, match="locked"):
            journal.begin(header(RunId("run-2")))
        assert read(journal) == []
        other.execute("ROLLBACK")
    journal.append(RUN, [line(1)])
    journal.append(RUN, [large(1)])
    journal.begin(header(RunId("run-2")))
    assert read(journal) == [line(1), large(1)]


def test_who_does_not_wait_is_told_at_once(journal: SqliteJournal, path: Path) -> None:
    journal.begin(header())
    journal.send(RUN, Letter("cancel", None))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for refused in (
            lambda: journal.append(RUN, [line(1)], wait=False),
            lambda: journal.append(RUN, [large(1)], wait=False),
            lambda: journal.letters(RUN, wait=False),
        ):
            with pytest.raises(StoreError) as caught:
                refused()
            assert caught.value.retryable
            assert journal._db.execute("PRAGMA busy_timeout").fetchone() == (0,)
        other.execute("ROLLBACK")
    assert len(journal.letters(RUN)) == 1
    assert journal._db.execute("PRAGMA busy_timeout").fetchone() == (faults.BUSY_S * 1000,)


def test_who_does_not_wait_does_not_wait_for_other_threads(journal: SqliteJournal) -> None:
    journal.begin(header())
    before = journal.version()
    taken, done = threading.Event(), threading.Event()

    def holds() -> None:
        with journal._using():
            taken.set()
            done.wait(120)

    thread = threading.Thread(target=holds)
    thread.start()
    assert taken.wait(120)
    with pytest.raises(StoreError, match="another thread") as caught:
        journal.append(RUN, [line(1)], wait=False)
    assert caught.value.retryable
    assert journal.version() == before
    done.set()
    thread.join()
    journal.append(RUN, [line(1)], wait=False)
    assert journal.version() != before


READ_ONLY = """
import os, sys
sys.path.insert(0, os.getcwd())
from weft.core.errors import StoreError, UnknownReference
from weft.durability.journal.sqlite import SqliteJournal
os.setuid(65534) if os.getuid() == 0 else None
try:
    SqliteJournal(sys.argv[1])
except StoreError as error:
    print(error)
"""


def test_a_folder_that_may_not_be_written_is_told(path: Path) -> None:
    folder = path.parent / "locked"
    folder.mkdir()
    SqliteJournal(folder / path.name).close()
    (folder / path.name).chmod(0o400)
    folder.chmod(0o500)
    for tried in (folder / path.name, folder / "new.sqlite"):
        told = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(tried)], capture_output=True, text=True
        )
        assert "may this user write" in told.stdout, told
    folder.chmod(0o700)


def test_a_damaged_file_names_the_remedy(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        for number in range(200):
            journal.append(RUN, [line(number), large(number)])
    whole = path.read_bytes()
    rng = Random(8)
    noticed = 0
    for _ in range(60):
        damaged = bytearray(whole)
        if rng.random() < 0.3:
            del damaged[rng.randrange(1, len(damaged)) :]
        else:
            at = rng.randrange(len(damaged) - 600)
            damaged[at : at + 500] = rng.randbytes(500)
        path.write_bytes(damaged)
        noticed += _noticed(path)
    assert noticed >= 48  # the rest hit what no row uses


def _noticed(path: Path) -> bool:
    """Whether a damaged journal says so; what it gives in spite of it must be what was written."""
    written: list[Record] = [record for n in range(200) for record in (line(n), large(n))]
    try:
        with closing(SqliteJournal(path)) as journal:
            complaints = journal.check()
            for numbered in journal.records(RUN):
                assert numbered.record == written[numbered.seq - 1] or complaints
            return bool(complaints)
    except (StoreError, UnknownReference):  # the latter where the row of the run was hit
        return True


def test_one_wrong_bit_in_a_row_is_noticed(journal: SqliteJournal) -> None:
    journal.begin(header())
    journal.append(RUN, [line(1)])
    journal.append(RUN, [large(2)])
    for table, column in (("batches", "body"), ("blobs", "body"), ("runs", "header")):
        for rowid, body in journal._db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            for at in range(0, len(body), 7):
                wrong = bytes([*body[:at], body[at] ^ 4, *body[at + 1 :]])
                statement = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                journal._db.execute(statement, (wrong, rowid))
                assert journal.check(), (table, at)
                journal._db.execute(statement, (body, rowid))
    assert not journal.check()


def test_a_damaged_journal_can_be_moved_away(path: Path) -> None:
    path.write_text("nothing of ours\n" * 200)
    with pytest.raises(StoreError, match="damaged") as caught:
        SqliteJournal(path)
    assert caught.value.hint == faults.MOVE_IT
    first = set_aside(path)
    assert first.name == "journal.sqlite.aside-1"
    assert first.read_text().startswith("nothing of ours")
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
    assert set_aside(path).name == "journal.sqlite.aside-2"
    assert not path.exists()
    with closing(SqliteJournal(path.with_name("journal.sqlite.aside-2"))) as journal:
        assert [summary.run for summary in journal.runs()] == [RUN]


def test_a_journal_in_use_is_not_moved_away(journal: SqliteJournal, path: Path) -> None:
    journal.begin(header())
    with pytest.raises(StoreError, match="in use"):
        set_aside(path)
    assert path.exists()


BATCHES = [[line(1)], [line(2), line(3)], [large(4)], [line(5), large(6)], [line(7)]]


def recorded(folder: Path) -> tuple[bytes, bytes, bytes]:
    """The file, the write-ahead log and the file of `once` calls of a small run, as they are before
    any checkpoint."""
    path = folder / "whole.sqlite"
    with closing(sqlite3.connect(path)) as db:  # small pages make a short log
        db.execute("PRAGMA page_size = 512")
        db.execute("VACUUM")
    SqliteJournal(path).close()
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        for batch in BATCHES:
            journal.append(RUN, batch)
        beside = (path.with_name("whole.sqlite-wal"), path.with_name("whole.sqlite.once") / "1")
        return path.read_bytes(), *(file.read_bytes() for file in beside)  # type: ignore[return-value]


def after_power_loss(path: Path, main: bytes, log: bytes, once: bytes) -> int:
    """How many batches are left; -1 when the run is not. They must be the first ones.

    What is missing must be told, and nothing else.
    """
    path.write_bytes(main)
    beside = path.with_name(f"{path.name}.once")
    beside.mkdir(exist_ok=True)
    (beside / "1").write_bytes(once)
    path.with_name(f"{path.name}-wal").write_bytes(log)
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    with closing(SqliteJournal(path)) as journal:
        told = " ".join(journal.check())
        if not journal.runs():
            assert "the run 'run-1' is missing" in told
            return -1
        found = read(journal)
        whole = sum(map(len, BATCHES))
        missing = f"the records from {len(found) + 1} to {whole} are missing"
        assert missing in told if len(found) < whole else not told
    prefixes = [[r for batch in BATCHES[:n] for r in batch] for n in range(len(BATCHES) + 1)]
    return prefixes.index(found)


def checked(
    folder: Path, cuts: Iterator[int] | range, main: bytes, log: bytes, once: bytes
) -> list[int]:
    # SQLite waits for the disk when it closes; where one is in memory that is quick.
    memory = Path("/dev/shm")
    place = memory / f"weft-test-{os.getpid()}" if memory.is_dir() else folder / "cut"
    place.mkdir()
    try:
        return [after_power_loss(place / "journal.sqlite", main, log[:cut], once) for cut in cuts]
    finally:
        shutil.rmtree(place)


def test_a_power_loss_leaves_the_beginning(tmp_path: Path) -> None:
    """The log cut after any of its bytes: here at some, below at all."""
    main, log, once = recorded(tmp_path)
    frame = 512 + 24
    borders = [32 + frame * n for n in range(len(log) // frame + 1)]
    cuts = sorted({*range(0, len(log), 97), *borders, *(b - 1 for b in borders), len(log)})
    left = checked(tmp_path, iter(cut for cut in cuts if cut <= len(log)), main, log, once)
    assert left == sorted(left)
    assert set(left) == {-1, *range(len(BATCHES) + 1)}


@pytest.mark.slow
def test_a_power_loss_at_every_byte_leaves_the_beginning(tmp_path: Path) -> None:
    main, log, once = recorded(tmp_path)
    left = checked(tmp_path, range(len(log) + 1), main, log, once)
    assert left == sorted(left)
    assert set(left) == {-1, *range(len(BATCHES) + 1)}


def test_a_torn_log_leaves_the_beginning(tmp_path: Path) -> None:
    """Bytes of the log that never reached the disk, or that are of another time."""
    main, log, once = recorded(tmp_path)
    rng = Random(8)
    for _ in range(150):
        torn = bytearray(log)
        at = rng.randrange(len(torn))
        length = rng.choice((1, 8, 512))
        torn[at : at + length] = rng.choice((bytes(length), rng.randbytes(length)))
        assert checked(tmp_path, iter([len(log)]), main, bytes(torn), once)[0] in range(-1, 6)
