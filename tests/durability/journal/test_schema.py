"""The file of a journal: who may read it, its version, and what else it may be."""

from __future__ import annotations

import errno
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.durability.journal.lines import RUN, WALL, header, line, read
from weft.core.codec import encode
from weft.core.errors import StoreError
from weft.core.events import NodeStarted
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.durability.journal.rows import START, link, sealed
from weft.durability.journal.sqlite import SqliteJournal
from weft.durability.journal.sqlite import journal as module
from weft.durability.journal.sqlite.tables import MIGRATIONS, base_of, number, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "journal.sqlite"


def written(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header()).release()


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


def test_only_the_user_may_read_a_journal(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        for file in path.parent.rglob("*"):
            wanted = 0o700 if file.is_dir() else 0o600
            assert stat.S_IMODE(file.stat().st_mode) == wanted, file
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_old_journal_is_brought_up_to_date(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.begin(header())
        journal.append(RUN, [line(1)])
    newer = [*MIGRATIONS, ["ALTER TABLE runs ADD COLUMN label TEXT NOT NULL DEFAULT 'none'"]]
    for _ in range(2):
        with closing(opened(path, power_safe=False, migrations=newer)) as db:
            assert number(db, "PRAGMA user_version") == len(newer)
            assert db.execute("SELECT id, label FROM runs").fetchall() == [(RUN, "none")]
            assert number(db, "SELECT count(*) FROM batches") == 1


def an_earlier_wefts(path: Path) -> list[Record]:
    """A journal of format 2, in which every record is an object."""
    records: list[Record] = [NodeStarted(NodeId("n"), 1, 0.5, "d"), line(1)]
    path.parent.mkdir(exist_ok=True)
    body = sealed(f"[{','.join(map(encode, records))}]")
    with closing(opened(path, power_safe=False, migrations=MIGRATIONS[:2])) as db:
        query = "INSERT INTO runs (no, id, flow, wall, header) VALUES (1, ?, 'flow', ?, ?)"
        db.execute(query, (RUN, WALL, sealed(encode(header()))))
        key, chain = base_of(1) + len(records), link(START, len(records), 1, body)
        db.execute("INSERT INTO batches VALUES (?, 1, ?, ?)", (key, body, chain))
    return records


def test_records_of_an_earlier_weft_are_read_and_gone_on_with(path: Path) -> None:
    records = an_earlier_wefts(path)
    with closing(SqliteJournal(path)) as journal:
        assert number(journal._db, "PRAGMA user_version") == len(MIGRATIONS)
        assert read(journal) == records
        journal.claim(RUN)
        journal.append(RUN, records)
        assert read(journal) == records * 2
        assert not journal.check()


def test_a_journal_of_an_earlier_weft_is_read_where_it_may_not_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = an_earlier_wefts(path)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "this user may not write to it")

    monkeypatch.setattr(module, "opened", denied)
    with closing(SqliteJournal(path, to_read=True)) as journal:
        assert read(journal) == records


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    written(path)
    broken = [*MIGRATIONS, ["ALTER TABLE runs ADD COLUMN label TEXT", "no SQL"]]
    with pytest.raises(sqlite3.OperationalError):
        opened(path, power_safe=False, migrations=broken)
    with closing(SqliteJournal(path)) as journal:
        assert read(journal) == []
        assert not journal.check()


def newer(path: Path) -> None:
    written(path)
    changed(path, "PRAGMA user_version = 99")


def another_programs(path: Path) -> None:
    changed(path, "CREATE TABLE mail (id)")


def another_empty_one(path: Path) -> None:
    changed(path, "PRAGMA user_version = 7")


def another_owners(path: Path) -> None:
    written(path)
    changed(path, "PRAGMA application_id = 7")


def text(path: Path) -> None:
    path.write_text("# notes\n" * 999)


REFUSED: dict[Callable[[Path], None], str] = {
    newer: "has format 99.*newer",
    another_programs: "another program.*weft runs",
    another_empty_one: "another program",
    another_owners: "another program",
    text: "damaged or no",
}


@pytest.mark.parametrize("make", REFUSED)
def test_a_file_that_is_none_of_ours_is_refused_and_left_alone(
    path: Path, make: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=REFUSED[make]):
        SqliteJournal(path)
    assert path.read_bytes() == before


def test_a_journal_that_is_closed_says_so(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.runs()


def test_power_safety_is_asked_for(path: Path) -> None:
    for power_safe, level in ((False, 1), (True, 2)):
        with closing(opened(path, power_safe=power_safe)) as db:
            assert number(db, "PRAGMA synchronous") == level
            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
