"""Journals that may not be written: they are read all the same, and nothing beside them changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import Letter
from weft.durability.journal.sqlite import SqliteJournal
from weft.durability.journal.sqlite import journal as module

READER = """
import os, sys
sys.path.insert(0, os.getcwd())
from tests.durability.journal.lines import RUN, header, read
from weft.core.errors import StoreError
from weft.core.ids import RunId
from weft.durability.journal.sqlite import SqliteJournal
if os.getuid() == 0:  # the modes of files do not bind root
    os.setgid(65534)
    os.setuid(65534)
try:
    journal = SqliteJournal(sys.argv[1], to_read=True)
    standing = journal.summary(RUN).standing
    print("read", len(read(journal)), standing, journal.check())
    journal.begin(header(RunId("another")))
    print("wrote")
except StoreError as error:
    print("refused:", error)
"""
WRITING: dict[str, Callable[[SqliteJournal], object]] = {
    "begin": lambda journal: journal.begin(header(RunId("another"))),
    "claim": lambda journal: journal.claim(RUN),
    "append": lambda journal: journal.append(RUN, [line(1)]),
    "send": lambda journal: journal.send(RUN, Letter("cancel", None)),
    "letters": lambda journal: journal.letters(RUN),
    "prune": lambda journal: journal.prune(keep=0),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that every user may enter."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    if not all(parent.stat().st_mode & 0o001 for parent in made.parents):
        made.rmdir()
        pytest.skip("no other user may enter the folder of temporary files")
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def old(path: Path) -> Path:
    """A journal of two records that nobody has open."""
    with closing(SqliteJournal(path)) as journal:
        recorded(journal)
    return path


def recorded(journal: SqliteJournal) -> None:
    journal.begin(header())
    journal.append(RUN, [line(1), large(2)])


def copied(path: Path, folder: Path, *ends: str) -> Path:
    """A journal with two records in its log; the files that end so are copied to `folder`."""
    with closing(SqliteJournal(path)) as journal:
        recorded(journal)
        for end in ends:
            shutil.copy(path.with_name(path.name + end), folder / (path.name + end))
        once = shutil.copytree(f"{path}.once", folder / f"{path.name}.once")
        once.chmod(0o755)
        (once / "1").chmod(0o444)
    if "-wal" not in ends:
        shutil.copy(path, folder / path.name)  # what the log had is in it now
    return folder / path.name


def as_another(path: Path) -> list[str]:
    """What a user who may not write to `path` is told of it."""
    command = [sys.executable, "-c", READER, str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


WHOLE = "read 2 interrupted []"
MODES = [(0o444, 0o555), (0o444, 0o777), (0o666, 0o555)]


@pytest.mark.skipif(sys.platform == "win32", reason="files have modes")
@pytest.mark.parametrize(("mode", "folders"), MODES)
@pytest.mark.parametrize("ends", [("",), ("", "-wal", "-shm"), ("", "-wal")])
def test_what_another_user_may_read_is_read_whole_or_not_at_all(
    path: Path, folder: Path, mode: int, folders: int, ends: tuple[str, ...]
) -> None:
    journal = copied(path, folder, *ends)
    for end in ends:
        (folder / (path.name + end)).chmod(mode)
    folder.chmod(folders)
    files = [file for file in folder.iterdir() if file.is_file()]
    before = {file: file.read_bytes() for file in files if file.suffix != ".sqlite-shm"}
    told = as_another(journal)
    if ends == ("", "-wal") and folders == 0o555:  # nowhere to put the index of the log
        assert len(told) == 1
        assert "newest records" in told[0]
        assert "journal.sqlite-wal" in told[0]
        assert "copy journal.sqlite and all beside it" in told[0]
    else:
        assert told[0] == WHOLE, told
        assert told[1].startswith("refused:"), told
        assert "cannot be written" in told[1]
        assert "this user write" in told[1]
    if mode == 0o444:
        assert {file: file.read_bytes() for file in before} == before


@pytest.mark.skipif(sys.platform == "win32", reason="files have modes")
def test_who_may_not_even_read_is_told_so(path: Path, folder: Path) -> None:
    journal = copied(path, folder, "")
    journal.chmod(0o000)
    (told,) = as_another(journal)
    assert "cannot be read (may this user read that file?)" in told


@pytest.mark.skipif(sys.platform == "win32", reason="files have modes")
def test_claims_that_may_not_be_seen_count_as_taken(path: Path, folder: Path) -> None:
    journal = copied(path, folder, "")
    claims = folder / "journal.sqlite.claims"
    claims.mkdir(mode=0o755)
    (claims / "1").touch()
    journal.chmod(0o444)
    (claims / "1").chmod(0o444)
    assert as_another(journal)[0] == WHOLE
    (claims / "1").chmod(0o000)
    assert as_another(journal)[0] == "read 2 running []"


class Denied:
    """Opens journals that this process may write to as if it might not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def open(self, path: Path) -> SqliteJournal:
        def denied(path: Path, *, power_safe: bool) -> object:
            raise PermissionError(13, "not today")

        with self._monkeypatch.context() as patched:
            patched.setattr(module, "opened", denied)
            return SqliteJournal(path, to_read=True)


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> Denied:
    return Denied(monkeypatch)


@pytest.mark.parametrize("write", WRITING)
def test_whatever_writes_is_refused_and_reading_goes_on(
    old: Path, denied: Denied, write: str
) -> None:
    with closing(denied.open(old)) as journal:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"not today; it can only be read.*copy it"):
                WRITING[write](journal)
            assert read(journal) == [line(1), large(2)]
    with closing(SqliteJournal(old)) as journal:
        assert [summary.run for summary in journal.runs()] == [RUN]


def test_only_who_asks_for_it_gets_a_journal_that_cannot_be_written(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    with pytest.raises(StoreError, match=r"cannot be written.*may this user write"):
        SqliteJournal(old)
    with closing(SqliteJournal(old, to_read=True)) as journal:
        assert read(journal) == [line(1), large(2)]


def test_a_journal_that_is_not_there_cannot_be_read(path: Path, denied: Denied) -> None:
    with pytest.raises(StoreError, match="cannot be written: not today"):
        denied.open(path)


def test_what_others_write_is_seen(old: Path, denied: Denied) -> None:
    """First where nobody has the file open, then while somebody has, then after that."""
    expected = [line(1), large(2)]
    with closing(denied.open(old)) as reader:
        assert read(reader) == expected
        version = reader.version()
        assert reader.version() == version
        for part in range(2):
            with closing(SqliteJournal(old)) as writer:
                writer.claim(RUN)
                for number in range(10):
                    expected += [line(100 * part + number), large(number)]
                    writer.append(RUN, expected[-2:])
                    assert read(reader) == expected
                    assert reader.version() != version
                    version = reader.version()
                assert reader.summary(RUN).standing == "running"
            assert read(reader) == expected
            assert reader.summary(RUN).standing == "interrupted"
        assert not reader.check()


def test_what_was_written_to_while_it_was_read_is_not_believed(old: Path, denied: Denied) -> None:
    with closing(denied.open(old)) as reader:
        told = pytest.raises(StoreError, match="written to while it was read")
        with told as caught, reader._using(), closing(SqliteJournal(old)) as writer:
            writer.send(RUN, Letter("cancel", None))
        assert caught.value.retryable
        assert read(reader) == [line(1), large(2)]


def test_an_empty_file_that_cannot_become_a_journal_says_so(path: Path, denied: Denied) -> None:
    path.touch()
    with pytest.raises(StoreError, match=r"has format 0.*brings it up to date"):
        denied.open(path)
    path.write_text("notes\n" * 500)
    with pytest.raises(StoreError, match="damaged or no journal"):
        denied.open(path)
