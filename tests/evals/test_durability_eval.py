"""The durability evaluation on weft alone: every run is whole, every row has its shape."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evals.durability import conversation_50
from evals.durability import rows as reporting
from evals.engine.cases import case_named
from evals.engine.rounds import Timing
from evals.engine.rows import Row
from evals.engine.worker import Contestant, stored_bytes


@pytest.fixture(autouse=True)
def _own_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("gc.collect", lambda: 0)
    monkeypatch.delenv("WEFT_JOURNAL")
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))


def grown(system: str, case: str, folder: Path) -> int:
    """The bytes of a second run."""
    with asyncio.Runner() as runner:
        contestant = Contestant(system, case_named(case), folder, runner)
        contestant.sample()
        before = stored_bytes(folder)
        contestant.sample()
    return stored_bytes(folder) - before


@pytest.mark.parametrize("system", [name for name in reporting.SYSTEMS if name.startswith("weft")])
def test_a_run_is_recorded_unless_it_is_asked_not_to_be(system: str, tmp_path: Path) -> None:
    assert (grown(system, "chain_30", tmp_path) > 0) == (system != "weft_flow_none")


def test_a_conversation_is_stored_once_however_long_it_is(tmp_path: Path) -> None:
    stored = [grown("weft_flow", f"conversation_{turns}", tmp_path) for turns in (20, 40)]
    assert stored[0] < 3.5 * conversation_50.spoken_bytes("conversation_20")
    assert stored[1] < 2.5 * stored[0]


def test_rows_tell_medians_bytes_and_the_ratio_of_each_round() -> None:
    wall = {"weft_flow": [10.0, 2.0, 9.0], "langgraph_sqlite": [100.0, 100.0, 10.0]}
    stored = dict.fromkeys(wall, 1000.0)
    timing = Timing("chain_100", {}, wall, wall, stored, {"dbos": "not installed"})
    rows = [Row(**row) for row in reporting.rows_of(timing)]
    found = {(row.system, row.metric): row.value for row in rows}
    assert found["weft_flow", "median_ms"] == 9.0
    assert found["weft_flow", "ratio_to_langgraph_sqlite"] == 0.1
    assert found["weft_flow", "bytes_per_node"] == 10.0
    assert found["dbos", "skipped: not installed"] is None
    text = reporting.table(rows)
    assert "| weft_flow | 9.0 (3.4 to 9.8) | 0.100 | 10 |" in text
    assert "| dbos | skipped: not installed | | |" in text


def test_a_conversation_tells_bytes_what_was_said_and_how_it_grows() -> None:
    said = conversation_50.spoken_bytes("conversation_50")
    timings = {
        "conversation_50": Timing("conversation_50", stored={"dbos": 2.0 * said}),
        "conversation_100": Timing("conversation_100", stored={"dbos": 6.0 * said}),
    }
    rows = {(row.case, row.metric): row.value for row in conversation_50.rows_of("dbos", timings)}
    assert rows["conversation_50", "times_said"] == 2.0
    assert rows["conversation_100", "times_said"] == 3.0
    assert rows["conversation_50", "growth"] == 3.0
