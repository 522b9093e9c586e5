"""The evaluation itself, on a model that is made here."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from evals.local_engine import systems
from evals.local_engine.__main__ import evaluate, table
from evals.local_engine.load import CASES, STREAMS, Load, long_text, questions
from evals.local_engine.plot import draw
from evals.local_engine.rounds import QUICK, Effort, Samples, measure, timing_rows
from evals.local_engine.systems import System, Unavailable, find

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    pytest.skip("needs torch", allow_module_level=True)

from tests.serving.local import tiny

SHORT = Effort(rounds=1, tokens=3, prompt_words=5)


@pytest.fixture(scope="module")
def weft(tmp_path_factory: pytest.TempPathFactory) -> System:
    model = tiny.make(tmp_path_factory.mktemp("tiny"))
    return System("weft", sys.executable, "evals.local_engine.workers.weft", str(model))


def test_a_round_has_all_cases_and_a_process_that_fails_says_why(weft: System) -> None:
    broken = System("broken", sys.executable, "evals.local_engine.workers.nothing", "")
    samples = measure([weft, broken], SHORT, threads=1)
    assert not samples["weft"].failure
    assert {case: len(values) for case, values in samples["weft"].cases.items()} == dict.fromkeys(
        CASES, 1
    )
    assert "nothing" in samples["broken"].failure
    skipped = [row for row in timing_rows(samples) if row.system == "broken"]
    assert [row.value for row in skipped] == [None]


def test_ratios_are_of_the_same_round(tmp_path: Path) -> None:
    samples = {
        "weft": Samples({"stream_1": [10.0, 30.0, 20.0], "first_token": [1.0, 2.0, 3.0]}),
        "llama_cpp": Samples({"stream_1": [10.0, 10.0, 10.0]}),
    }
    rows = timing_rows(samples)
    value = {(row.case, row.system, row.metric): row.value for row in rows}
    assert value["stream_1", "weft", "tokens_per_s"] == 20.0
    assert value["stream_1", "weft", "ratio_to_llama_cpp"] == 2.0
    assert value["first_token", "weft", "s"] == 2.0
    assert ("stream_1", "weft", "ratio_to_vllm_cpu") not in value
    assert len(table(rows).splitlines()) == len(rows)
    draw(rows, tmp_path / "plot.svg")
    assert "stream_1" in (tmp_path / "plot.svg").read_text("utf-8")


def test_a_peer_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "LLAMA", tmp_path / "no-venv")
    with pytest.raises(Unavailable, match="pip install"):
        find("llama_cpp")
    rows = evaluate(["llama_cpp"], QUICK, threads=1)
    assert [row.value for row in rows] == [None]
    assert "pip install" in rows[0].metric


def test_no_two_rounds_share_a_prompt() -> None:
    loads = [Load("m", 1, 8, 20, number) for number in range(3)]
    asked = [text for load in loads for text in (*questions(load, STREAMS), long_text(load))]
    assert len(set(asked)) == len(asked)
