"""The pytest fixture `weft_evaluate`: a test fails when a workflow got worse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.evaluation.flows import sums_folder
from weft.errors import InputError
from weft.evaluation.baseline_file import evaluate_against


def test_the_baseline_is_written_once_and_then_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sums_folder(tmp_path, 9))
    baseline = tmp_path / "evaluations" / "sums.json"

    def against(record: str = "none", **more: Any) -> tuple[str, ...]:
        flow = weft.load("sums.yaml")
        options = {"durability": "none", "record": record, **more}
        return evaluate_against(baseline, flow, "sums.csv", "exact", **options)[1]

    with pytest.raises(InputError, match="there is no baseline"):
        against()
    assert not against("once")
    written = baseline.read_text(encoding="utf-8")
    assert "outputs" not in json.loads(written)["cases"][0]
    monkeypatch.setenv("WEFT_TEST_WRONG", "1 2 3 4 5 6 7")
    assert "exact is worse" in against("once")[0]
    assert baseline.read_text(encoding="utf-8") == written
    assert not against("all")
    assert not against()
    assert "below 0.5" in against(fail_below=0.5)[0]


def test_the_fixture_reads_paths_from_the_tests_folder(
    weft_evaluate: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    sums_folder(tmp_path)
    flow = weft.load(tmp_path / "sums.yaml")
    with pytest.raises(InputError, match="there is no baseline"):
        weft_evaluate("absent", flow, tmp_path / "sums.csv", "exact", durability="none")
