"""What a recorded run leaves in its journal: statements, rows and bytes of each node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import weft
from weft.core.calls import ToolCalled
from weft.durability.journal.sqlite import SqliteJournal

ITEMS = 400


@weft.tool(effect="pure")
async def step(x: int) -> int:
    return x


@weft.tool(effect="idempotent")
async def put(x: int) -> str:
    return weft.idempotency_key()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal.sqlite")) as made:
        yield made


def mapped() -> weft.Flow:
    flow = weft.Flow("mapped")
    flow.output(o=flow.map(list(range(ITEMS)), lambda item: flow.tool(step, x=item)))
    return flow


def cost(journal: SqliteJournal, flow: weft.Flow) -> tuple[int, int]:
    """Statements of a run, and the bytes that its rows add."""
    statements: list[str] = []
    before = size(journal)
    journal._db.set_trace_callback(statements.append)
    result = asyncio.run(flow.run(journal=journal))
    journal._db.set_trace_callback(None)
    assert result.outputs["o"] == list(range(ITEMS))
    return len(statements), size(journal) - before


def size(journal: SqliteJournal) -> int:
    query = "SELECT coalesce(sum(length(body)), 0) FROM {}"
    found = (
        journal._db.execute(query.format(table)).fetchone()[0] for table in ("batches", "blobs")
    )
    return sum(found)


def test_the_nodes_of_a_map_share_rows_and_statements(journal: SqliteJournal) -> None:
    statements, size_bytes = cost(journal, mapped())
    assert statements < ITEMS / 4
    assert size_bytes < 120 * ITEMS
    again, more_bytes = cost(journal, mapped())
    assert again <= statements
    assert more_bytes < size_bytes, "what is the same in every run is kept once"


def test_calls_have_a_key_where_the_tool_has_a_use_for_one(journal: SqliteJournal) -> None:
    flow = weft.Flow("keys")
    flow.output(a=flow.tool(step, x=1), b=flow.tool(put, x=1))
    result = asyncio.run(flow.run(journal=journal))
    run = journal.runs()[0].run
    calls = [n.record for n in journal.records(run) if isinstance(n.record, ToolCalled)]
    assert {call.tool: call.key for call in calls} == {"step": "", "put": result.outputs["b"]}
