"""The `once` calls of a run beside its journal: synced before a call, and known when it is lost."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, line, read
from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.errors import StoreError
from weft.core.events import NodeLogged, RunFinished
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.core.values import Effect, Usage
from weft.durability.journal.sqlite import SqliteJournal, set_aside
from weft.durability.journal.sqlite import once_log as module

DONE = RunFinished("succeeded", Usage(), (), 9.0)


def called(number: int, effect: Effect = "once") -> ToolCalled:
    call = CallId(f"tool:{number}#0")
    return ToolCalled(NodeId("pay"), 1, call, "pay", {"amount": number}, effect, "key", 1.0)


def returned(number: int, value: object = "paid") -> ToolReturned:
    return ToolReturned(NodeId("pay"), 1, CallId(f"tool:{number}#0"), value, None, "done", 2.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(path)) as journal:
        yield journal


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.once") / "1"


BATCHES: list[list[Record]] = [
    [line(1), called(1)],
    [returned(1)],
    [line(4)],
    [called(2)],
    [returned(2)],
    [called(3)],
]


def left(path: Path, upto: int = len(BATCHES)) -> None:
    """A run whose process dies after so many batches; its log is in the file itself."""
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        for batch in BATCHES[:upto]:
            journal.append(RUN, batch)


def cut(path: Path, upto: int) -> None:
    """Lose the records after `upto`, as a damaged log would."""
    with closing(SqliteJournal(path)) as journal:
        journal._db.execute("DELETE FROM batches WHERE key > ?", ((1 << 32) + upto,))


def test_an_intent_is_synced_before_its_call_and_nothing_else_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    modes: list[int] = []
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("nobody tells which file a descriptor is")
    with closing(SqliteJournal(path)) as journal:
        insert = journal._db.set_trace_callback
        insert(lambda text: modes.append(1) if text == "PRAGMA synchronous = FULL" else None)
        monkeypatch.setattr(module.os, "fsync", counted)
        journal.begin(header())
        for batch in ([line(1)], [called(9, "unknown")], [returned(9)]):
            journal.append(RUN, batch)
        assert (synced, modes) == ([], [])
        journal.append(RUN, [called(1)])
        assert (str(beside(path)) in synced, len(modes)) == (True, 1)
        del synced[:]
        journal.append(RUN, [returned(1)])
        assert (synced, len(modes)) == ([], 1)


def test_who_does_not_wait_does_not_wait_for_the_disk(journal: SqliteJournal) -> None:
    journal.begin(header())
    with pytest.raises(StoreError, match="wait for the disk") as caught:
        journal.append(RUN, [called(1)], wait=False)
    assert caught.value.retryable
    journal.append(RUN, [called(1)])
    journal.append(RUN, [returned(1)], wait=False)
    assert read(journal) == [called(1), returned(1)]


def test_a_whole_record_lacks_nothing(path: Path) -> None:
    left(path)
    with closing(SqliteJournal(path)) as journal:
        assert journal.losses(RUN).notes == ()
        journal.claim(RUN).release()
        assert read(journal) == [record for batch in BATCHES for record in batch]
        assert journal.losses(RUN).notes == ()


@pytest.mark.parametrize("upto", [0, 2, 3, 4, 5, 6])
def test_the_calls_that_were_lost_are_known_and_added_by_whoever_claims_the_run(
    path: Path, upto: int
) -> None:
    left(path)
    cut(path, upto)
    whole = [record for batch in BATCHES for record in batch]
    calls = [record for record in whole[upto:] if not isinstance(record, NodeLogged)]
    with closing(SqliteJournal(path)) as journal:
        for _ in range(2):
            found = journal.losses(RUN)
            assert list(found.calls) == calls
            assert found.notes == (f"the records from {upto + 1} to 7 are missing",)
            assert not found.unsure
        journal.claim(RUN).release()
        assert read(journal) == [*whole[:upto], *calls]
        assert journal.losses(RUN).calls == ()
        assert journal.losses(RUN).notes == found.notes, "it is told from now on"
        claim = journal.claim(RUN)
        journal.append(RUN, [called(4)])
        claim.release()
        assert journal.losses(RUN).notes == found.notes


def test_a_claim_that_dies_half_way_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(path)
    cut(path, 2)

    def dies(*_: object) -> None:
        raise OSError("dead")

    with closing(SqliteJournal(path)) as journal:
        calls = journal.losses(RUN).calls
        with monkeypatch.context() as patched:
            patched.setattr("weft.durability.journal.sqlite.claims.insert", dies)
            with pytest.raises(StoreError, match="dead"):
                journal.claim(RUN)
        assert journal.losses(RUN).calls == calls
        journal.claim(RUN)
        assert read(journal)[2:] == list(calls)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def headless(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(data)


def halved(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is missing": lambda path: path.unlink(),
    "is damaged: calls are": flipped,
    "is damaged: calls are damaged or missing": halved,
    "is damaged: its first line": headless,
    "is damaged: it is empty": lambda path: path.write_bytes(b""),
    "is damaged: its second": lambda path: path.write_bytes(path.read_bytes()[:96]),
}


@pytest.mark.parametrize("told", DAMAGES)
def test_without_that_file_nobody_knows_and_that_stays_so(path: Path, told: str) -> None:
    left(path)
    DAMAGES[told](beside(path))
    with closing(SqliteJournal(path)) as journal:
        for _ in range(2):
            found = journal.losses(RUN)
            assert found.unsure
            assert any(told in note for note in found.notes), found.notes
            assert "may have been made" in found.notes[-1]
            assert journal.check()
            journal.claim(RUN).release()


def test_an_older_file_is_noticed(path: Path) -> None:
    left(path, 2)
    older = beside(path).read_bytes()
    with closing(SqliteJournal(path)) as journal:
        journal.claim(RUN)
        for batch in BATCHES[2:]:
            journal.append(RUN, batch)
    beside(path).write_bytes(older)
    with closing(SqliteJournal(path)) as journal:
        found = journal.losses(RUN)
    assert found.unsure
    assert "is older than the records" in found.notes[0]


def test_a_file_of_another_history_is_noticed(path: Path, tmp_path: Path) -> None:
    left(path)
    other = tmp_path / "other.sqlite"
    with closing(SqliteJournal(other)) as journal:
        journal.begin(header())
        journal.append(RUN, [*[line(n) for n in range(6)], called(7)])
    beside(path).write_bytes(beside(other).read_bytes())
    with closing(SqliteJournal(path)) as journal:
        found = journal.losses(RUN)
    assert found.unsure
    assert "does not fit the records" in found.notes[0]
    assert found.calls == (called(7),)


def test_a_process_that_dies_before_it_notes_its_last_batch_has_lost_nothing(path: Path) -> None:
    left(path, 3)
    before = beside(path).read_bytes()
    with closing(SqliteJournal(path)) as journal:
        journal.claim(RUN)
        journal.append(RUN, [called(2)])
    beside(path).write_bytes(before)
    with closing(SqliteJournal(path)) as journal:
        assert journal.losses(RUN).notes == ()


def test_what_is_very_long_is_known_without_its_arguments(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        long = ToolCalled(NodeId("a"), 1, CallId("c"), "t", {"x": "y" * 99_999}, "once", "k", 1.0)
        journal.append(RUN, [long])
        journal.append(
            RUN, [ToolReturned(NodeId("a"), 1, CallId("c"), "y" * 99_999, None, "done", 2.0)]
        )
    assert beside(path).stat().st_size < 1000
    cut(path, 0)
    with closing(SqliteJournal(path)) as journal:
        (found,) = journal.losses(RUN).calls
    assert isinstance(found, ToolCalled)
    assert (found.node, found.call) == ("a", "c")
    assert "characters" in found.arguments["left out"]


def test_the_file_goes_with_its_run(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        claim = journal.begin(header())
        journal.append(RUN, [line(1), called(1), returned(1)])
        claim.release()
        assert beside(path).exists()
        claim = journal.claim(RUN)
        journal.append(RUN, [DONE])
        claim.release()
        assert not beside(path).exists(), "it has succeeded, and its end is in the file"
        assert journal.losses(RUN).notes == ()
        assert journal.check() == []
    left(other := path.with_name("other.sqlite"))
    with closing(SqliteJournal(other)) as journal:
        journal.prune(runs=[RUN])
        assert not beside(other).exists()
    left(third := path.with_name("third.sqlite"))
    assert beside(set_aside(third)).exists()


def test_a_run_that_is_under_way_lacks_nothing(journal: SqliteJournal) -> None:
    journal.begin(header())
    journal.append(RUN, [called(1)])
    assert journal.losses(RUN).notes == ()
    assert journal.check() == []


def test_intents_that_cannot_be_kept_beside_the_journal_are_refused(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("no space left on device")

    journal.begin(header())
    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(StoreError, match="cannot be kept beside") as caught:
        journal.append(RUN, [called(1)])
    assert not caught.value.retryable


class Disk:
    """Files grow by `room` bytes in all; what is there may be written anew."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self._write = os.write

    def write(self, file: int, data: bytes) -> int:
        grows = os.lseek(file, 0, os.SEEK_CUR) + len(data) - os.fstat(file).st_size
        if grows > 0 and not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        fits = len(data) - max(0, grows - self.room)
        self.room -= max(0, min(grows, self.room))
        return self._write(file, data[:fits])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(module.os, "write", disk.write)
    return disk


def test_a_full_disk_beside_the_journal_is_waited_for_and_leaves_nothing(
    path: Path, journal: SqliteJournal, disk: Disk
) -> None:
    journal.begin(header())
    journal.append(RUN, [called(1)])
    before = beside(path).read_bytes()
    disk.room = 50
    for calls in ([called(2)], [returned(1)], [called(2), called(3)]):
        with pytest.raises(StoreError, match=r"no space.*weft runs prune") as caught:
            journal.append(RUN, calls)
        assert caught.value.retryable
        assert beside(path).read_bytes() == before
        assert read(journal) == [called(1)]
        disk.room = 50
    disk.room = 1 << 40
    journal.append(RUN, [called(2)])
    journal.append(RUN, [returned(2)])
    assert read(journal) == [called(1), called(2), returned(2)]


def test_a_process_that_gives_up_there_has_lost_nothing(path: Path, disk: Disk) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        journal.append(RUN, [called(1)])
        disk.room = 50
        with pytest.raises(StoreError, match="no space"):
            journal.append(RUN, [called(2)])
    disk.room = 1 << 40
    with closing(SqliteJournal(path)) as journal:
        assert journal.losses(RUN).notes == ()
        assert journal.check() == []
        journal.claim(RUN)
        assert read(journal) == [called(1)]


def test_what_could_not_be_noted_in_time_is_appended_once(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    claim = journal.begin(header())
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "fsync", full)
        for _ in range(2):
            with pytest.raises(StoreError, match="no space") as caught:
                journal.append(RUN, [called(1)])
            assert caught.value.retryable
    journal.append(RUN, [called(1), line(2)])
    journal.append(RUN, [called(2)])
    assert read(journal) == [called(1), line(2), called(2)]
    claim.release()
    assert journal.losses(RUN).notes == ()


def test_the_room_is_given_back_where_the_database_has_none(
    path: Path, journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise sqlite3.OperationalError("no")

    journal.begin(header())
    journal.append(RUN, [called(1)])
    before = beside(path).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("weft.durability.journal.sqlite.batch_writer.insert", dies)
        with pytest.raises(StoreError):
            journal.append(RUN, [called(2)])
    assert beside(path).read_bytes() == before


@pytest.mark.parametrize("torn", [b"\n" * 300, b"0000 half a li" + b"\n" * 200, b"0000 half"])
def test_a_line_that_was_under_way_when_the_process_died_is_no_damage(
    path: Path, torn: bytes
) -> None:
    left(path)
    beside(path).write_bytes(beside(path).read_bytes() + torn)
    with closing(SqliteJournal(path)) as journal:
        assert journal.losses(RUN).notes == ()
