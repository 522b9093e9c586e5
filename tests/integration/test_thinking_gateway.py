"""Thinking behind `weft gateway`, asked by the official client: a workflow, and a model alone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.integration.test_gateway import MODELS, PATIENCE_S, failed, gateway

FLOW = """
name: thoughtful
inputs: {question: string}
models:
  sums: {use: "./models.py:make", model: sums}
  slow: {use: "./models.py:make", model: slow}
  careful: {use: think, model: sums, think: {strategy: sample, width: 3}}
  thorough: {use: think, model: slow, think: {strategy: sample, width: 3}}
nodes:
  draft: {model: sums, prompt: "{{ question }}", think: {strategy: sample, width: 4}}
outputs: {answer: "{{ draft }}"}
"""
ASKED: Any = [{"role": "user", "content": "What is six times seven?"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sums = '"sums": lambda said: Reply("Six times seven. The answer is 42.", per_token_s=0.01),'
    models = MODELS.replace('"late":', f'{sums}\n    "late":')
    (tmp_path / "models.py").write_text(models)
    (tmp_path / "thoughtful.yaml").write_text(FLOW)
    return tmp_path


def test_both_are_models_for_the_official_client(folder: Path) -> None:
    with (
        gateway(folder, "thoughtful.yaml", "--model", "careful") as served,
        OpenAI(base_url=served.url, api_key="none") as api,
    ):
        assert sorted(model.id for model in api.models.list()) == ["careful", "thoughtful"]
        for name, samples in (("thoughtful", 4), ("careful", 3)):
            answer = api.chat.completions.create(model=name, messages=ASKED)
            assert "42" in (answer.choices[0].message.content or "")
            assert answer.usage is not None
            # A vote that is decided cancels the rest, so that at least a majority has answered.
            assert answer.usage.completion_tokens >= 4 * (samples // 2 + 1)
        pieces: list[str] = []
        reasoning: list[str] = []
        for chunk in api.chat.completions.create(model="careful", messages=ASKED, stream=True):
            delta = chunk.choices[0].delta if chunk.choices else None
            pieces.append((delta and delta.content) or "")
            reasoning.append(getattr(delta, "reasoning_content", None) or "")
        assert "42" in "".join(pieces)
        assert "".join(reasoning).count("42") >= 2
        with pytest.raises(openai.BadRequestError, match="no `stop`"):
            api.chat.completions.create(model="careful", messages=ASKED, stop=["x"])


def test_a_client_that_leaves_ends_every_thread(folder: Path) -> None:
    async def main(url: str) -> None:
        async with AsyncOpenAI(base_url=url, api_key="none") as api:
            asking = asyncio.create_task(
                api.chat.completions.create(model="thorough", messages=ASKED)
            )
            await until(folder, "3")
            asking.cancel()
            await asyncio.wait((asking,))
        await until(folder, "0")

    with gateway(folder, "thoughtful.yaml", "--model", "thorough") as served:
        asyncio.run(main(served.url))


async def until(folder: Path, running: str) -> None:
    """Wait until so many calls of the model are at work."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        file = folder / "running"
        if file.exists() and file.read_text() == running:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"never {running} calls at once")


def test_a_model_that_nobody_declares_is_said_at_the_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code, said = failed("thoughtful.yaml", "--model", "carful")
    assert (code, "no workflow declares the model 'carful'" in said) == (2, True)
    assert "did you mean `careful`?" in said
