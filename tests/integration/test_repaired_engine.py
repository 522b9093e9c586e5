"""A real engine with weft's repairs is right, and without them it is not: then they are needed.

Both engines of a test run side by side, each in processes of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
TIMEOUT_S = 480
MENDED = "vLLM has mended this: drop the repair"

Outcomes = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def oracle(model: Path) -> Oracle:
    return Oracle(model)


def test_speculation_keeps_the_distribution_and_survives_top_k(
    model: Path, oracle: Oracle, tmp_path: Path
) -> None:
    repaired, unrepaired = _run("speculate", model, tmp_path)
    acceptance, warm = repaired
    assert acceptance["drafted"] > 200
    assert acceptance["accepted"] > 0.95 * acceptance["drafted"]
    expected = oracle.answers(PROMPT, tokens=3, top_k=TOP_K)
    assert abs(deviation(warm["samples"], expected)) < 4
    hotter = {answer: share**0.7 for answer, share in expected.items()}
    wrong = {answer: share / sum(hotter.values()) for answer, share in hotter.items()}
    assert deviation(warm["samples"], wrong) > 6, "the test must tell temperatures apart"

    acceptance, *warm = unrepaired
    assert acceptance["accepted"] < 0.5 * acceptance["drafted"], MENDED
    assert warm == [], MENDED


def test_pipelines_without_a_warm_up_answer_like_transformers(
    model: Path, oracle: Oracle, tmp_path: Path
) -> None:
    repaired, unrepaired = _run("pipe", model, tmp_path)
    assert repaired[1]["answer"] == oracle.greedy(PROMPT, len(repaired[1]["answer"]))
    assert unrepaired == [{"ready": True}], MENDED


def test_a_seed_draws_the_same_after_a_prompt_in_pieces(model: Path, tmp_path: Path) -> None:
    repaired, unrepaired = _run("chunk", model, tmp_path)
    whole, pieces = repaired
    assert (whole["cached"], pieces["cached"]) == (128, 0)
    assert pieces["answer"] == whole["answer"]
    assert unrepaired == [whole], MENDED


def _run(job: str, model: Path, folder: Path) -> tuple[Outcomes, Outcomes]:
    """What a job of `offline` yielded with repairs, and without: until it ended or died."""
    with _engine(job, model, folder / "1") as repaired, _engine(job, model, folder / "0") as bare:
        assert repaired.wait(TIMEOUT_S) == 0, (folder / "1.log").read_text("utf-8")[-4000:]
        bare.wait(TIMEOUT_S)
    return _outcomes(folder / "1"), _outcomes(folder / "0")


@contextmanager
def _engine(job: str, model: Path, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A job that writes its outcomes to `out`, whose name says whether repairs are on."""
    command = [sys.executable, "-m", "tests.integration.offline", job, os.fspath(model)]
    with out.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [*command, os.fspath(out)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT, "WEFT_VLLM_REPAIRS": out.name},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _outcomes(out: Path) -> Outcomes:
    outcomes = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert outcomes, out.with_suffix(".log").read_text("utf-8")[-4000:]
    return outcomes
