"""Weft's models in the vLLM that is installed: as far as a CPU can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from tests.decoding.diffusion.models import published as p

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = p.write(
        tmp_path_factory.mktemp("models") / "sdar",
        p.SDAR | {"rope_theta": 1e6},
        p.weights_of(p.qwen_like(p.SDAR, "qwen3")),
    )
    command = [sys.executable, "-m", "tests.serving.vllm.diffusion.inside", str(folder)]
    quiet = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
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


def test_wrong_requests_are_refused_where_they_come_in(said: dict[str, Any]) -> None:
    fine, plain, *refused = said["admitted"]
    assert (fine, plain) == ("", "")
    words = ["nonsense", "diffusion_read_only", "log-probabilities", "penalties"]
    for text, word in zip(refused, words, strict=True):
        assert text.startswith("VLLMValidationError")
        assert word in text
