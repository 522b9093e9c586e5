"""A conversation in a journal: each turn hands on all of it, and adds what is new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.durability.journal.lines import RUN, header, read
from weft.core.calls import CallId, ToolCalled, ToolReturned
from weft.core.errors import StoreError
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Record
from weft.durability.journal.sqlite import SqliteJournal

TURNS = 120


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal.sqlite")) as made:
        made.begin(header())
        yield made


def talk(turns: int) -> list[Any]:
    return [[role, f"{role} {turn} " * 40] for turn in range(turns) for role in ("user", "model")]


def turn(number: int, spoken: list[Any]) -> list[Record]:
    node, call = NodeId(f"talk[{number}]"), CallId("tool:fb1a23defdef#0")
    return [
        ToolCalled(node, 1, call, "turn", {"messages": spoken[:-2]}, "pure", "", 0.5),
        ToolReturned(node, 1, call, spoken, None, "done", 0.5),
    ]


def test_a_turn_takes_as_many_statements_as_any_other(journal: SqliteJournal) -> None:
    counts = []
    for number in range(1, TURNS):
        found: list[str] = []
        journal._db.set_trace_callback(found.append)
        journal.append(RUN, turn(number, talk(number)))
        journal._db.set_trace_callback(None)
        counts.append(len(found))
    assert max(counts[-20:]) <= max(counts[10:40]) + 4
    assert [r for n in range(1, TURNS) for r in turn(n, talk(n))] == read(journal)


def test_what_could_not_be_written_is_written_by_the_next(journal: SqliteJournal) -> None:
    journal.append(RUN, turn(20, talk(20)))
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="no space"):
        journal.append(RUN, turn(60, talk(60)))
    journal._db.execute("PRAGMA max_page_count = 1000000")
    journal.append(RUN, turn(61, talk(61)))
    assert read(journal) == [*turn(20, talk(20)), *turn(61, talk(61))]
    assert journal.check() == []


def test_a_run_keeps_its_messages_when_another_that_had_them_is_removed(
    journal: SqliteJournal,
) -> None:
    other = RunId("run-2")
    claim = journal.begin(header(other))
    journal.append(other, turn(30, talk(30)))
    journal.append(RUN, turn(30, talk(30)))
    claim.release()
    journal.prune(runs=[other])
    journal.append(RUN, turn(31, talk(31)))
    assert read(journal) == [*turn(30, talk(30)), *turn(31, talk(31))]
    assert journal.check() == []
