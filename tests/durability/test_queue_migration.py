"""A journal from before there was a queue keeps its runs, and gets one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.conformance.queue import TERMS, header
from weft.core.codec import encode
from weft.core.ids import RunId
from weft.durability.journal.rows import sealed
from weft.durability.journal.sqlite import SqliteJournal
from weft.durability.journal.sqlite.tables import MIGRATIONS, opened

BEFORE = 4
"""The format of journals without a queue."""


def test_an_older_file_gets_a_queue(tmp_path: Path) -> None:
    path, old = tmp_path / "journal.sqlite", header("old")
    with closing(opened(path, power_safe=False, migrations=MIGRATIONS[:BEFORE])) as db:
        query = "INSERT INTO runs (no, id, flow, wall, header) VALUES (1, ?, ?, ?, ?)"
        db.execute(query, (old.run, old.flow, old.wall, sealed(encode(old))))
    with closing(SqliteJournal(path)) as journal:
        assert journal.header(RunId("old")) == old
        assert not journal.queue.entries()
        assert journal.queue.entry(RunId("old")) is None
        assert journal.queue.submit(header("new"), TERMS)
        assert not journal.queue.submit(old, TERMS)
        taken = journal.queue.take(("default",), ("v1",))
        assert taken is not None
        assert taken.run == "new"
        assert not journal.check()
