"""Weft's models in the vLLM that is installed: as far as a CPU can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.decoding.diffusion.models import published as p
from tests.serving.vllm.diffusion import scheduled
from tests.serving.vllm.diffusion.runner import Runner, Sampling, table
from weft.decoding.diffusion.models.folder import describe
from weft.serving.vllm.diffusion.decoder import ServedCanvas

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weights = p.weights_of(p.qwen_like(p.SDAR, "qwen3"))
    return p.write(tmp_path_factory.mktemp("models") / "sdar", p.SDAR, weights)


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, Any]:
    return told("inside", folder)


def told(script: str, folder: Path) -> dict[str, Any]:
    """What a script that loads vLLM prints, in a process of its own."""
    command = [sys.executable, "-m", f"tests.serving.vllm.diffusion.{script}", str(folder)]
    quiet = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
    quiet["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, env=quiet)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found


def test_a_published_folder_is_a_diffusion_model_of_ours(said: dict[str, Any]) -> None:
    assert said["diffusion"]
    assert said["architecture"] == "WeftQwen3Canvas"
    assert said["supported"]
    assert said["hooked"]
    assert (said["canvas"], said["layers"]) == (4, 2)
    assert said["state"] == "CanvasState"


def test_a_cpu_is_told_why_not(said: dict[str, Any]) -> None:
    assert "GPU" in said["refused"]


def test_the_state_hands_over_pieces_that_end_with_blocks(said: dict[str, Any]) -> None:
    """A canvas of slots 6 to 9, which spans two blocks of 4, and a prompt of 7 tokens."""
    attended = said["attended"]
    assert attended["starts"] == [0, 2, 4, 8, 11]
    assert attended["lengths"] == [8, 10, 4, 7]
    assert attended["tables"] == [[7, 8], [7, 8], [5, 6], [5, 6]]
    assert attended["causal"] is False
    assert attended["longest"] == 4


def test_the_sampler_answers_in_vllms_own_type(said: dict[str, Any]) -> None:
    attended = said["attended"]
    assert attended["output"]
    assert attended["sampled"] == [0, 0]
    assert attended["rejected"] == [4, 0]
    assert attended["masks"] < 4  # something was committed, and is read next
    assert attended["rejection"] is None


def test_a_server_has_the_decoder_that_it_was_started_with(said: dict[str, Any]) -> None:
    assert said["attended"]["usual"] == "threshold:0.9"


def test_wrong_requests_are_refused_where_they_come_in(said: dict[str, Any]) -> None:
    fine, plain, *refused = said["admitted"]
    assert (fine, plain) == ("", "")
    words = ["nonsense", "diffusion_read_only", "log-probabilities", "penalties"]
    for text, word in zip(refused, words, strict=True):
        assert text.startswith("VLLMValidationError")
        assert word in text


def test_vllms_own_scheduler_lets_texts_be_written(folder: Path) -> None:
    """In step, a step ahead, and with too few pages for all; as the hand-made runner has them."""
    by_scheduler = told("scheduled", folder)
    traits = describe(folder).traits
    model = table(traits.vocabulary, scheduled.SEED, traits)
    for name, prompt, decoder, most in scheduled.WISHES:
        runner = Runner(ServedCanvas(traits, "sdar", scheduled.WIDTH), model, scheduled.LONGEST)
        stops = set(traits.end_ids)
        wish = Sampling({"weft_decode": decoder}, most, all_stop_token_ids=stops)
        text = runner.add(name, 0, prompt, wish)
        runner.run()
        for way in ("plain", "ahead", "cramped"):
            assert by_scheduler[way][name] == text.emitted, (way, name)
