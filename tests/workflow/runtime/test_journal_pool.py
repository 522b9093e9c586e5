"""The journal of who names none stays open from one run to the next, as long as it is the same."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import weft
from weft.core.ids import RunId
from weft.durability.journal.sqlite import SqliteJournal
from weft.workflow.runtime import journals
from weft.workflow.runtime.journals import JournalPool, open_journal


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of runs that name none."""
    monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "j.sqlite"))
    return tmp_path / "j.sqlite"


@pytest.fixture
def opened(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The journals that were opened, in order; those of other tests are closed."""
    del place
    found: list[Path] = []

    class Opened(SqliteJournal):
        def __init__(self, path: Path | str, *, to_read: bool = False) -> None:
            found.append(Path(path))
            super().__init__(path, to_read=to_read)

    monkeypatch.setattr(journals, "SqliteJournal", Opened)
    return found


@pytest.fixture
def flow() -> weft.Flow:
    """A workflow of one node."""
    flow = weft.Flow("one")
    flow.output(o=flow.value(1))
    return flow


def runs_in(place: Path) -> list[RunId]:
    """The runs that a journal has, as a process of its own would see them."""
    journal = SqliteJournal(place, to_read=True)
    try:
        return [summary.run for summary in journal.runs() if summary.standing == "succeeded"]
    finally:
        journal.close()


def test_runs_one_after_another_open_it_once(
    flow: weft.Flow, place: Path, opened: list[Path]
) -> None:
    results = [flow.run_sync() for _ in range(20)]
    assert opened == [place]
    assert set(runs_in(place)) == {result.run for result in results}
    assert len(runs_in(place)) == 20


def test_a_run_begins_with_one_word_to_the_journal(
    flow: weft.Flow, opened: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    begin = SqliteJournal.begin

    def counting(self: SqliteJournal, header: object) -> object:
        begun.append("")
        return begin(self, header)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteJournal, "begin", counting)
    for _ in range(20):
        flow.run_sync()
    assert len(begun) == 20


@pytest.mark.parametrize("how", ["moved", "removed", "replaced", "log"])
def test_a_journal_that_is_another_is_opened_anew(
    flow: weft.Flow, place: Path, opened: list[Path], how: str
) -> None:
    flow.run_sync()
    files = [place, place.with_name("j.sqlite-wal"), place.with_name("j.sqlite-shm")]
    if how == "log":  # a process that ended last has taken it away
        journals.JOURNALS.close()
        SqliteJournal(place).close()
        assert not files[1].exists()
    else:
        for file in files:
            if file.exists():
                file.rename(f"{file}.old") if how == "moved" else file.unlink()
    if how == "replaced":
        SqliteJournal(place).close()
    later = flow.run_sync()
    assert len(opened) == 2
    assert later.run in runs_in(place)


def test_one_that_is_idle_is_kept(
    flow: weft.Flow, opened: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "b", "a"):
        monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / name))
        flow.run_sync()
    assert [path.name for path in opened] == ["a", "b", "a"]
    for name in ("a", "b"):
        assert len(runs_in(tmp_path / name)) == 2


def test_a_run_that_is_under_way_keeps_its_own(
    flow: weft.Flow,
    place: Path,
    opened: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        first = flow.start()
        monkeypatch.setenv("WEFT_JOURNAL", str(tmp_path / "other"))
        await flow.run()
        assert (await first.wait()).ok

    asyncio.run(main())
    assert len(opened) == 2
    assert len(runs_in(place)) == len(runs_in(tmp_path / "other")) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of this kind here")
def test_what_a_parent_process_has_open_is_left_alone(place: Path) -> None:
    pool = JournalPool()
    lent = pool.lend()
    pool.give_back(lent)
    lent.process += 1  # as a child sees it
    mine = pool.lend()
    assert mine.journal is not lent.journal
    assert not mine.journal.runs()
    assert not lent.journal.runs()  # it is open
    pool.give_back(mine)
    pool.close()
    lent.journal.close()


def test_a_journal_that_is_named_is_closed_by_who_named_it(
    flow: weft.Flow, place: Path, tmp_path: Path
) -> None:
    named = open_journal(tmp_path / "named.sqlite")
    flow.run_sync(journal=named)
    assert len(named.runs()) == 1
    named.close()
    assert not place.exists()
