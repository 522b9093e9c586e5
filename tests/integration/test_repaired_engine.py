"""A real engine with weft's repairs is right, and without them it is not: then they are needed.

The engines run one after another in processes of their own, four starts in all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.offline import PROMPT, TOP_K
from tests.integration.oracle import Oracle, deviation
from tests.integration.tiny_llama import make_tiny_llama

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_CI_ENV": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
MENDED = "vLLM has mended this: drop the repair"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def oracle(model: Path) -> Oracle:
    return Oracle(model)


def test_repaired_speculation_accepts_and_keeps_the_distribution(
    model: Path, oracle: Oracle, tmp_path: Path
) -> None:
    acceptance, warm = _run("speculate", model, tmp_path, repaired=True)
    assert acceptance["drafted"] > 200
    assert acceptance["accepted"] > 0.95 * acceptance["drafted"]
    expected = oracle.answers(PROMPT, tokens=3, top_k=TOP_K)
    assert abs(deviation(warm["samples"], expected)) < 4
    hotter = {answer: share**0.8 for answer, share in expected.items()}
    total = sum(hotter.values())
    wrong = {answer: share / total for answer, share in hotter.items()}
    assert deviation(warm["samples"], wrong) > 6, "the test must tell temperatures apart"


def test_unrepaired_speculation_refuses_its_own_draft_and_dies_of_top_k(
    model: Path, tmp_path: Path
) -> None:
    acceptance, *warm = _run("speculate", model, tmp_path, repaired=False)
    assert acceptance["accepted"] < 0.5 * acceptance["drafted"], MENDED
    assert warm == [], MENDED


def test_repaired_pipelines_answer_like_transformers(
    model: Path, oracle: Oracle, tmp_path: Path
) -> None:
    *_, last = _run("pipe", model, tmp_path, repaired=True)
    assert last["answer"] == oracle.greedy(PROMPT, len(last["answer"]))


def test_unrepaired_pipelines_die_of_their_first_request(model: Path, tmp_path: Path) -> None:
    assert _run("pipe", model, tmp_path, repaired=False) == [{"ready": True}], MENDED


def _run(job: str, model: Path, folder: Path, *, repaired: bool) -> list[Mapping[str, Any]]:
    """What a job of `offline` yielded before it ended or died."""
    out, log = folder / "outcomes", folder / "log"
    command = [sys.executable, "-m", "tests.integration.offline", job, os.fspath(model)]
    environment = {**os.environ, **ENVIRONMENT, "WEFT_VLLM_REPAIRS": str(int(repaired))}
    with log.open("wb") as lines:
        ended = subprocess.run(
            [*command, os.fspath(out)],
            cwd=ROOT,
            env=environment,
            stdout=lines,
            stderr=subprocess.STDOUT,
            timeout=240,
        )
    outcomes = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert outcomes, log.read_text("utf-8")[-4000:]
    assert ended.returncode == 0 or not repaired, log.read_text("utf-8")[-4000:]
    return outcomes
