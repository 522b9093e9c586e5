"""Failed starts, provoked with vLLM 0.32 and shortened in failures.txt: what a person is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.supervise.log import diagnose

LOGS = {
    name.strip(): lines.splitlines()
    for name, _, lines in (
        section.partition("\n")
        for section in (Path(__file__).parent / "failures.txt").read_text("utf-8").split("## ")[1:]
    )
}
SPEC = ServeSpec("owner/smol", port=8123)
TOLD = {
    "port": ("the port 8123 is taken", "another port"),
    "kv_small": ("one request of 8192 tokens needs 0.18 GiB of KV cache", "raise kv_cache_bytes"),
    "kv_large": ("less free memory than the KV cache asks for (100.0 GiB)", "lower kv_cache_bytes"),
    "tp_heads": ("tp 2 does not divide the 9 attention heads of smol", "divides 9"),
    "arch": ("does not know the architecture NopeForCausalLM", "newer vLLM"),
    "model_type": ("knows the model type nope", "newer transformers"),
    "no_weights": ("there are no weights in owner/smol", "*.safetensors"),
    "ray": ("Ray is not installed", "weft[ray]"),
    "unknown_arg": ("does not know the arguments --no-such-thing", "`extra`"),
    "bad_choice": ("vLLM refuses an argument --dtype: invalid choice: 'float8'", "correct"),
    "hub": ("owner/smol cannot be fetched", "check the name"),
    "hub_offline": ("owner/smol cannot be fetched", "check the name"),
    "tool_parser": ("no tool parser nope", "lists them"),
    "reasoning_parser": ("no reasoning parser nope", "lists them"),
    "too_long": ("User-specified max_model_len (100000) is greater", "take out"),
    "quant": ("Unknown quantization method: nope", "take out"),
    "suffixless": ("Arctic Inference is required", "doctor"),
    "spec_vocab": ("should have the same vocabulary size", "take out"),
    "misfits": ("do not fit this torch", "pip uninstall -y torchvision torchaudio torchcodec"),
}
# Not provoked here: these need a GPU, a hub or an exhausted machine.
ELSEWHERE = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": "too little memory",
    "ValueError: No available memory for the cache blocks.": "the device has too little memory",
    "OSError: You are trying to access a gated repo.": "who you are",
    "ValueError: current platform cpu does not support ray.": "refuses Ray",
    "RuntimeError: [enforce fail] DefaultCPUAllocator: Cannot allocate memory": "the machine has",
}


@pytest.mark.parametrize("name", LOGS)
def test_provoked_failures(name: str) -> None:
    message, hint = TOLD[name]
    error = diagnose(LOGS[name], SPEC)
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint
    assert len(error.message) < 400


@pytest.mark.parametrize("line", ELSEWHERE)
def test_failures_of_other_machines(line: str) -> None:
    log = [*LOGS["ray"][:3], f"(Worker pid=1) ERROR 11-21 12:22:21 [core.py:15] {line}"]
    assert ELSEWHERE[line] in diagnose(log, SPEC).message


def test_the_stage_that_was_reached() -> None:
    assert diagnose(LOGS["kv_large"], SPEC).stage_reached == "loading weights: 100 %"
    assert diagnose(LOGS["misfits"], SPEC).stage_reached == ""


def test_the_first_cause_is_told_not_what_it_led_to() -> None:
    error = diagnose(
        [
            "(Worker pid=7) ERROR 11-21 12:22:21 [core.py:15] house.odd.OddError: the root of it",
            "RuntimeError: Engine core initialization failed. See root cause above.",
        ],
        SPEC,
    )
    assert error.message == "vLLM did not start: OddError: the root of it"


def test_silence_and_last_words() -> None:
    assert "it said nothing" in diagnose([], SPEC).message
    assert "half a word" in diagnose(["first", "half a word", "  "], SPEC).message


@given(st.lists(st.text(max_size=80), max_size=8))
def test_any_log_gives_an_error_to_raise(lines: list[str]) -> None:
    assert diagnose(lines, SPEC).message


def test_braces_in_a_log_are_only_braces() -> None:
    error = diagnose(["api_server.py: error: unrecognized arguments: {spec} {9} %s"], SPEC)
    assert "{spec} {9} %s" in error.message
