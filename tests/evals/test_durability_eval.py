"""The durability evaluation on weft alone: every run is whole, every row has its shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.durability import rows as reporting
from evals.durability.cases import NODES, spoken_bytes
from evals.durability.rounds import Timing
from evals.durability.systems import load
from evals.durability.worker import stored_bytes
from evals.engine.rows import Row


@pytest.mark.parametrize("system", ["weft_none", "weft_async", "weft_sync", "weft_power_safe"])
def test_a_run_is_recorded_and_takes_time(system: str, tmp_path: Path) -> None:
    served = load(system, "chain_100", tmp_path)
    served.run()
    before = stored_bytes(tmp_path)
    assert served.run() > 0
    grown = stored_bytes(tmp_path) - before
    assert (grown > 0) == (system != "weft_none")
    served.close()


def test_a_conversation_is_stored_once_however_long_it_is(tmp_path: Path) -> None:
    stored = []
    for turns in (50, 100):
        folder = tmp_path / str(turns)
        folder.mkdir()
        served = load("weft_sync", f"conversation_{turns}", folder)
        served.run()
        empty = stored_bytes(folder)
        served.run()  # what is said in it is said nowhere else
        stored.append(stored_bytes(folder) - empty)
        served.close()
    assert stored[0] < 2.5 * spoken_bytes(50)
    assert stored[1] < 2.5 * stored[0]


def test_rows_tell_medians_bytes_and_the_ratio_of_each_round() -> None:
    wall = {"weft_sync": [10.0, 2.0, 9.0], "langgraph_sqlite": [100.0, 100.0, 10.0]}
    timing = Timing(wall, dict.fromkeys(wall, 1000.0), {"dbos_sqlite": "not installed"})
    rows = [Row(**row) for row in reporting.rows_of("chain_100", timing)]
    found = {(row.system, row.metric): row.value for row in rows}
    assert found["weft_sync", "median_ms"] == 9.0
    assert found["weft_sync", "ratio_to_langgraph"] == 0.1
    assert found["weft_sync", "bytes_per_node"] == 1000 / NODES["chain_100"]
    assert found["dbos_sqlite", "skipped: not installed"] is None
    assert "| weft_sync | 9.0 (3.4 to 9.8) | 0.100 | 10 |" in reporting.table(rows)
