"""What vLLM is told for each kind of deployment: one golden file, and the real vLLM's own flags."""

from __future__ import annotations

import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import assert_golden
from tests.serving.vllm.launch.engines import (
    CONTAINER,
    CPU,
    CUDA,
    DRAFTERS,
    EIGHT_CORES,
    FLAGS,
    TWO_CORES,
    adapter,
    canvas_model,
    drafter,
    model,
)
from weft.serving.vllm.launch import diffusion
from weft.serving.vllm.launch.command import launch
from weft.serving.vllm.launch.decoders import parse_decode
from weft.serving.vllm.launch.engine import Engine, installed_engine
from weft.serving.vllm.launch.machine import HostResources
from weft.serving.vllm.launch.spec import ServeSpec

HEADLESS = ("--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1", "--headless")
GOLDEN = Path(__file__).parents[3] / "golden" / "vllm_arguments.txt"
CASES: list[tuple[str, dict[str, Any], Engine, HostResources, int]] = [
    ("a small model on two cores", {}, CPU, TWO_CORES, 0),
    ("tensor parallel 2 on eight cores", {"tp": 2, "dtype": "float32"}, CPU, EIGHT_CORES, 0),
    ("pipeline parallel 2 on two cores", {"pp": 2, "kv_cache_bytes": 2**28}, CPU, TWO_CORES, 0),
    ("data parallel 2 on two cores", {"dp": 2}, CPU, TWO_CORES, 0),
    ("the second of two replicas", {"replicas": 2}, CPU, EIGHT_CORES, 1),
    ("the third of three replicas on two cores", {"replicas": 3}, CPU, TWO_CORES, 2),
    ("four cores by quota", {"tp": 2}, CPU, CONTAINER, 0),
    ("the second of two machines", {"tp": 2, "extra": HEADLESS}, CPU, TWO_CORES, 0),
    ("two API processes", {"extra": ("--api-server-count", "2")}, CPU, TWO_CORES, 0),
    ("compiled on a CPU", {"eager": False}, CPU, TWO_CORES, 0),
    ("n-gram drafts", {"decode": parse_decode("ngram:4,prompt_lookup_max=3")}, CPU, TWO_CORES, 0),
    ("weft's drafts", {"decode": parse_decode("weft:8,memory_mib=32")}, CPU, TWO_CORES, 0),
    ("a key, from its variable", {"api_key_env": "WEFT_TEST_KEY"}, CPU, TWO_CORES, 0),
    ("a GPU", {}, CUDA, EIGHT_CORES, 0),
    ("a model of the hub", {"model": "owner/Large-70B", "tp": 8}, CUDA, EIGHT_CORES, 0),
    (
        "everything",
        {
            "served_name": "house",
            "tp": 4,
            "pp": 2,
            "dp": 2,
            "device": "cuda",
            "dtype": "bfloat16",
            "quantization": "fp8",
            "max_context_tokens": 2048,
            "max_seqs": 64,
            "max_batched_tokens": 4096,
            "block_size": 32,
            "kv_cache_bytes": 2**33,
            "chunked_prefill": False,
            "prefix_caching": False,
            "eager": True,
            "tool_parser": "hermes",
            "reasoning_parser": "qwen3",
            "host": "0.0.0.0",
            "extra": ("--seed", "7", "--compilation-config.mode=3"),
        },
        CUDA,
        EIGHT_CORES,
        0,
    ),
    ("two nodes", {"tp": 4, "pp": 2, "dp": 2, "nodes": 2}, CUDA, EIGHT_CORES, 0),
    ("chunked prefill", {"chunked_prefill": True}, CUDA, EIGHT_CORES, 0),
    ("a draft model", {"decode": parse_decode("draft_model:owner/Small:5")}, CUDA, EIGHT_CORES, 0),
    ("a draft that is here", {"decode": parse_decode("draft_model:small")}, CPU, TWO_CORES, 0),
    *(
        (f"a published head: {name}", {"decode": parse_decode(name)}, CUDA, EIGHT_CORES, 0)
        for name in ("eagle3:eagle3", "eagle3:speculators:3", "medusa:medusa", "dflash:dflash")
    ),
    ("a diffusion model", {"model": "./blocks"}, CUDA, EIGHT_CORES, 0),
    (
        "a diffusion model and its decoder",
        {"model": "./blocks", "decode": parse_decode("threshold:0.9,block=8"), "max_seqs": 4},
        CUDA,
        EIGHT_CORES,
        0,
    ),
    ("adapters", {"adapters": {"law": "law", "med": "med"}}, CPU, TWO_CORES, 0),
]


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TEST_KEY", "a secret of the test")
    monkeypatch.setattr(diffusion, "find_spec", lambda _: True)  # Triton is here
    for name in ("VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND"):
        monkeypatch.delenv(name, raising=False)


def drawn(folder: Path) -> str:
    """Every case as text: the variables, then one line for each flag and its values."""
    model(folder)
    model(folder, "small")
    canvas_model(folder)
    for name, config in DRAFTERS.items():
        drafter(folder, name, config)
    adapter(folder, "law", 8)
    adapter(folder, "med", 24)
    text = []
    for title, asked, engine, machine, replica in CASES:
        with chdir(folder):
            spec = ServeSpec(**{"model": "./tiny", **asked})
            made = launch(spec, engine, 8123, replica, machine=machine)
        assert "secret" not in repr(made)
        text.append(f"## {title}: {made.name} on {engine.platform}")
        text += [f"{name}={value}" for name, value in sorted(made.env.items())]
        text.append(" ".join(made.argv).replace(" --", "\n  --"))
        text.append("")
    return "\n".join(text).replace(sys.executable, "python").replace(str(folder), "MODELS")


def test_every_kind_of_deployment(tmp_path: Path) -> None:
    assert_golden(GOLDEN, drawn(tmp_path))


def test_the_cases_use_every_flag_that_weft_knows(tmp_path: Path) -> None:
    used = {word.partition("=")[0].partition(".")[0] for word in drawn(tmp_path).split()}
    assert used >= FLAGS


@pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM is installed")
def test_the_installed_vllm_has_every_flag_that_weft_knows() -> None:
    assert installed_engine().flags >= FLAGS


def test_a_port_and_a_replica_are_all_that_differ_between_replicas(tmp_path: Path) -> None:
    spec = ServeSpec(model(tmp_path), replicas=2)
    first, second = (
        launch(spec, CPU, 9000 + number, number, machine=EIGHT_CORES) for number in (0, 1)
    )
    assert {*first.argv} ^ {*second.argv} == {"9000", "9001"}
    assert {*first.env.items()} ^ {*second.env.items()} == {
        ("VLLM_CPU_OMP_THREADS_BIND", "0-2"),
        ("VLLM_CPU_OMP_THREADS_BIND", "4-6"),
    }


def test_a_binding_of_the_users_own_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "1")
    assert "VLLM_CPU_OMP_THREADS_BIND" not in launch(ServeSpec(model(tmp_path)), CPU, 9000).env
