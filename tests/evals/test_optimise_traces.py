"""The evaluation of post-hoc knobs: on small traces of its own, and without any."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from evals import optimise_traces
from evals.engine.rows import Lookup


def problem(random: Random) -> dict[str, object]:
    branches = []
    for _ in range(40):
        final = random.choice((0, 0, 1, 2))
        tokens = random.randint(4_000, 20_000)
        branches.append({"len": tokens, "final": final, "probes": [1] * 7 + [final]})
    return {"gold": 0, "n_answers": 3, "probe_freq": 500, "branches": branches}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "reasoning"
    folder.mkdir()
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    return folder


def test_rows_of_small_traces(data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    random = Random(1)
    traces = [problem(random) for _ in range(3)]
    (data / "traces_qwen3_8b_aime24.json").write_text(json.dumps(traces))
    monkeypatch.setattr(optimise_traces, "_RESAMPLES", 200)
    rows = list(optimise_traces.rows(quick=True))
    figures = Lookup(rows)
    single = sum(b["final"] == 0 for p in traces for b in p["branches"]) / 120  # type: ignore[attr-defined]
    assert figures("aime24", "w1", "score") == pytest.approx(single)
    for width in optimise_traces.WIDTHS:
        exact = figures("aime24", f"w{width}", "score")
        assert exact == pytest.approx(figures("aime24", f"w{width}", "drawn_score"), abs=0.09)
    assert figures("aime24", "all", "model_calls") == 0
    assert [row.metric for row in rows if row.value is None] == [rows[-1].metric]
    assert "skipped: there is no file" in rows[-1].metric
    text = optimise_traces.table(rows)
    assert text.count("aime24") == 1 + len(optimise_traces.WIDTHS)
    optimise_traces.draw(rows, tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes()[:4] == b"\x89PNG"


def test_without_traces_it_says_so(data: Path) -> None:
    data.rmdir()
    rows = list(optimise_traces.rows(quick=True))
    assert [row.case for row in rows] == ["aime24", "hmmt25"]
    assert all("set WEFT_DATA" in row.metric for row in rows)
    assert "skipped" in optimise_traces.table(rows)
