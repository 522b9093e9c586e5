"""The evaluation of start/stop cycles, with the fake engine in the place of vLLM."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evals import serve_cycles
from tests.serving.vllm.conftest import state  # noqa: F401 - a fixture


@pytest.mark.slow
@pytest.mark.usefixtures("state")
def test_every_kind_of_death_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weft = [sys.executable, "-m", "tests.serving.vllm.fake_weft", "weft"]
    monkeypatch.setattr(serve_cycles, "WEFT", weft)
    serve_cycles.main(["--quick", "--json", str(tmp_path / "rows.json")])
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    found = {(r["case"], r["metric"]): r["value"] for r in rows if r["case"].endswith(" all")}
    for metric in ("leftover_processes", "busy_ports", "leftover_shared_memory"):
        assert found["serve cycles: all", metric] == 0
    assert found["serve cycles: all", "cycles"] == 4
    assert found["serve cycles: all", "answers"] == 6
