"""Tensor, pipeline and data parallelism answer what transformers answers, asked for in YAML."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from transformers import AutoTokenizer

import weft
from tests.integration.oracle import Oracle
from tests.integration.tiny_llama import READABLE, make_tiny_llama
from weft.serving.vllm.launch.spec import ServeSpec
from weft.serving.vllm.serve import stop
from weft.serving.vllm.supervise import registry
from weft.serving.vllm.supervise.detached import SupervisionTerms, start
from weft.serving.vllm.supervise.processes import end_leftovers, marked
from weft.workflow.runtime.models.factory import Models

pytestmark = pytest.mark.vllm
# Prompts of several lengths, two of which begin alike.
PROMPTS = ("What is 1?", "What is 1 more than " + "x" * 300, "Why", "Wer?", "a b c " * 30, "😀")
ANSWER = 40
# Eager workers skip the warm-up, without which pipelines need weft's repair.
WORKFLOW = """
name: parallel
inputs:
  prompts: {type: array}
models:
  tiny:
    use: vllm
    model: MODEL
    options: OPTIONS
nodes:
  answers:
    map: "{{ prompts }}"
    as: prompt
    do: {model: tiny, prompt: "{{ prompt }}", temperature: 0, max_tokens: ANSWER}
outputs:
  answers: "{{ answers }}"
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A registry of our own, so that nothing that runs already answers for us."""
    with pytest.MonkeyPatch.context() as environment:
        folder = tmp_path_factory.mktemp("state")
        environment.setenv("WEFT_STATE_DIR", os.fspath(folder))
        yield folder
        end_leftovers()


@pytest.fixture(scope="module")
def expected(model: Path) -> list[str]:
    """The answers of transformers."""
    oracle, tokenizer = Oracle(model), AutoTokenizer.from_pretrained(model)
    chats = tokenizer.apply_chat_template(
        [[{"role": "user", "content": prompt}] for prompt in PROMPTS],
        tokenize=False,
        add_generation_prompt=True,
    )
    return [tokenizer.decode(oracle.greedy(chat, ANSWER)) for chat in chats]


@pytest.mark.usefixtures("state")
# tests/integration/test_repaired_engine.py has a pipeline in every run of the tests.
@pytest.mark.parametrize("kind", ["tp", "dp", pytest.param("pp", marks=pytest.mark.slow)])
def test_two_ranks_answer_as_one(kind: str, model: Path, expected: list[str]) -> None:
    answers, workers, engines = _run(model, **{kind: 2})
    assert (workers, engines) == (2, 2 if kind == "dp" else 1)
    assert answers == expected
    assert all(len(answer) == ANSWER and set(answer) <= set(READABLE) for answer in answers)
    assert len(set(answers)) == len(PROMPTS)


@pytest.mark.usefixtures("state")
def test_two_machines_answer_as_one(model: Path, expected: list[str]) -> None:
    """Two servings of vLLM's own kind, one of them without a server, that meet on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    extra = ["--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    second = ServeSpec(
        os.fspath(model),
        tp=2,
        dtype="float32",
        kv_cache_bytes=2**28,
        max_context_tokens=1024,
        extra=(*extra, "--node-rank=1", "--headless"),
    )
    with registry.locked():
        entry = start(second, SupervisionTerms())
    try:
        answers, workers, engines = _run(model, extra=[*extra, "--node-rank=0"], tp=2)
    finally:
        stop(entry, now=True)
    assert (workers, engines) == (1, 1)
    assert answers == expected


def _run(model: Path, **ranks: object) -> tuple[list[str], int, int]:
    """The answers, how many workers the server had, and how many engines shared the work."""
    options = {"dtype": "float32", "kv_cache": "256MiB", "max_context_tokens": 1024, **ranks}
    source = WORKFLOW.replace("MODEL", os.fspath(model)).replace("OPTIONS", json.dumps(options))

    async def run() -> tuple[list[str], int, int]:
        flow = weft.loads(source.replace("ANSWER", str(ANSWER)))
        async with Models() as models:
            result = await flow.run(prompts=list(PROMPTS), models=models)
            assert result.status == "partial", result.reasons  # its answers are all cut off
            return list(result.outputs["answers"]), _workers(), _engines()

    return asyncio.run(run())


def _workers() -> int:
    """Worker processes of the one serving in our registry."""
    [serving] = [entry for entry in registry.entries() if entry.urls]
    ours = [process for process, mark in marked() if mark.serving == serving.id]
    return sum("VLLM::Worker" in " ".join(process.cmdline()) for process in ours)


def _engines() -> int:
    """Engines that have generated, by the server's own count."""
    [serving] = [entry for entry in registry.entries() if entry.urls]
    with urlopen(serving.urls[0].removesuffix("/v1") + "/metrics") as page:
        lines = page.read().decode().splitlines()
    tokens = [line for line in lines if line.startswith("vllm:generation_tokens_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) > 0 for line in tokens)
