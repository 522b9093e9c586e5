"""The chain of a run's batches: what is missing, changed or out of its place is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, header, large, line, read
from weft.core.errors import StoreError
from weft.core.events import RunFinished
from weft.core.ids import RunId
from weft.core.values import Usage
from weft.durability.journal.sqlite import SqliteJournal, tables

_SEQ = 1 << 32  # of the first run
END = RunFinished("failed", Usage(), ("no",), 9.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run of six records in four batches, which has ended."""
    path = tmp_path / "journal.sqlite"
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        for batch in ([line(1)], [line(2), large(3)], [line(4)], [line(5), END]):
            journal.append(RUN, batch)
    return path


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


DAMAGES: dict[str, tuple[str, list[str]]] = {
    "first": ("records from 1 to 1 are missing", [f"DELETE FROM batches WHERE key = {_SEQ + 1}"]),
    "middle": ("records from 2 to 3 are missing", [f"DELETE FROM batches WHERE key = {_SEQ + 3}"]),
    "last": ("records from 5 to 6 are missing", [f"DELETE FROM batches WHERE key = {_SEQ + 6}"]),
    "all": ("records from 1 to 6 are missing", ["DELETE FROM batches"]),
    "body": (
        "records from 4 to 4 cannot be read",
        [f"UPDATE batches SET body = x'00' WHERE key = {_SEQ + 4}"],
    ),
    "another's": (
        "records from 4 to 4 do not fit those before",
        [f"UPDATE batches SET body = (SELECT body FROM batches LIMIT 1) WHERE key = {_SEQ + 4}"],
    ),
    "part": (
        "records from 4 to 4 do not fit those before",
        [f"UPDATE batches SET part = 7 WHERE key = {_SEQ + 4}"],
    ),
    "unchained": (
        "records from 4 to 4 do not fit those before",
        [f"UPDATE batches SET chain = NULL WHERE key = {_SEQ + 4}"],
    ),
    "value": ("records from 2 to 3 cannot be read", ["DELETE FROM blobs"]),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_wrong_is_told_with_the_journal_the_run_and_the_remedy(
    path: Path, kind: str
) -> None:
    told, statements = DAMAGES[kind]
    changed(path, *statements)
    with closing(SqliteJournal(path)) as journal:
        with pytest.raises(StoreError, match=told) as caught:
            read(journal)
        assert str(path) in caught.value.message
        assert repr(RUN) in caught.value.message
        assert "weft runs show run-1 --salvage" in str(caught.value.hint)
        assert any(told in problem for problem in journal.check())


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_sound_can_be_salvaged(path: Path, kind: str) -> None:
    with closing(SqliteJournal(path)) as journal:
        whole = list(journal.records(RUN))
        assert journal.salvage(RUN).problems == ()
    told, statements = DAMAGES[kind]
    changed(path, *statements)
    with closing(SqliteJournal(path)) as journal:
        found = journal.salvage(RUN)
    assert any(told in problem for problem in found.problems)
    assert found.header == header()
    lost = {
        "first": {1},
        "middle": {2, 3},
        "last": {5, 6},
        "all": set(range(1, 7)),
        "body": {4},
        "value": {2, 3},
    }
    known = {one.seq: one for one in whole if one.seq not in lost.get(kind, set())}
    if kind in lost:
        assert {one.seq: one for one in found.records} == known
    else:
        assert [one.seq for one in found.records] == list(known)


def test_a_run_without_its_header_can_be_salvaged(path: Path) -> None:
    changed(path, "UPDATE runs SET header = x'0000000000'")
    with closing(SqliteJournal(path)) as journal:
        found = journal.salvage(RUN)
    assert (found.header.run, found.header.flow) == (RUN, "flow")
    assert len(found.records) == 6
    assert "header" in found.problems[0]


def test_reading_may_begin_anywhere(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        for after in range(7):
            assert [one.seq for one in journal.records(RUN, after)] == list(range(after + 1, 7))


def _as_before(path: Path) -> None:
    """A journal of the first format, with a run that has not ended."""
    with closing(tables.opened(path, power_safe=False, migrations=tables.MIGRATIONS[:1])) as db:
        changed_from = path.with_name("new.sqlite")
        with closing(SqliteJournal(changed_from)) as journal:
            journal.begin(header())
            journal.append(RUN, [line(1), line(2)])
        db.execute("ATTACH ? AS new", (str(changed_from),))
        db.execute(
            "INSERT INTO runs SELECT no, id, flow, wall, ended_wall, part, status, header "
            "FROM new.runs"
        )
        db.execute("INSERT INTO batches SELECT key, part, body FROM new.batches")
        db.execute("DETACH new")


def test_a_journal_of_the_format_before_is_read_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    _as_before(path)
    with closing(SqliteJournal(path)) as journal:
        assert read(journal) == [line(1), line(2)]
        assert journal.check() == []
        assert journal.losses(RUN).notes == ()
        claim = journal.claim(RUN)
        journal.append(RUN, [line(3)])
        claim.release()
        assert read(journal) == [line(1), line(2), line(3)]
        assert journal.check() == []
    changed(path, f"DELETE FROM batches WHERE key = {_SEQ + 3}")
    with closing(SqliteJournal(path)) as journal:
        assert journal.losses(RUN).notes == ("the records from 3 to 3 are missing",)


def test_a_run_that_the_journal_has_lost_is_told(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header(RunId("other"))).release()
    changed(path, "DELETE FROM runs WHERE id = 'run-1'")
    with closing(SqliteJournal(path)) as journal:
        assert any("the run 'run-1' is missing" in told for told in journal.check())


@pytest.mark.parametrize("act", [lambda j: j.losses(RunId("x")), lambda j: j.salvage(RunId("x"))])
def test_who_asks_for_a_run_that_is_not_there_is_told(
    path: Path, act: Callable[[SqliteJournal], object]
) -> None:
    with closing(SqliteJournal(path)) as journal, pytest.raises(Exception, match="no run 'x'"):
        act(journal)
