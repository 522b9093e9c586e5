"""Every lossless decoder on a real model: the plain text, token for token, in fp32."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from weft.core.errors import CapabilityError, ModelNotFound, SpecError, WeftError
from weft.core.ports import ModelRequest, Sampling, complete
from weft.core.values import AUTOREGRESSIVE, Completion, DecodeSpec, Lossless, Message
from weft.serving.local import LocalModel, LocalOptions

pytestmark = pytest.mark.model

MODEL = "smollm2-135m-instruct"
FAST = ("lookup", "suffix")
"""Decoders that are tried in the usual run; all others in the slow one."""
NEED_NOTHING = (*FAST, "hybrid", "lookahead", "self_draft", "easyspec")
OPTIONS = {"self_draft": (("layers", 8),), "easyspec": (("layers", 8), ("processes", False))}
PROMPTS = (
    "Repeat this twice: the cat sat on the mat and the dog sat on the log.",
    "Write a JSON object with name and age for Anna, who is 31, and for Tom, who is 42.",
    "What is a volcano? Answer in one sentence.",
)


def decoders() -> list[Any]:
    if find_spec("torch") is None:  # without the `local` extra there is nothing to test
        return []
    from weft.decoding.speculative.presets import NAMES, preset

    lossless = [name for name in NAMES if preset(name).lossless]
    return [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in lossless
    ]


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    try:
        model = LocalModel(MODEL, LocalOptions(dtype="float32", threads=1))
    except ModelNotFound as missing:
        pytest.skip(str(missing))
    yield model
    asyncio.run(model.aclose())


@pytest.fixture(scope="module")
def embedded() -> Iterator[LocalModel]:
    """As a workflow has it: weights in the 4 bits of their file, where the CPU has bfloat16."""
    try:
        model = LocalModel(MODEL, LocalOptions(threads=1))
    except ModelNotFound as missing:
        pytest.skip(str(missing))
    yield model
    asyncio.run(model.aclose())


def requests(temperature: float, decode: DecodeSpec) -> list[ModelRequest]:
    return [
        ModelRequest(
            (Message("user", prompt),),
            sampling=Sampling(24, temperature=temperature, top_p=0.9, top_k=0, seed=seed),
            decode=decode,
        )
        for seed, prompt in enumerate(PROMPTS)
    ]


def answers(model: LocalModel, asked: Sequence[ModelRequest], size: int) -> list[Completion]:
    """`size` at a time."""

    async def ask() -> list[Completion]:
        found = []
        for first in range(0, len(asked), size):
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(complete(model, one))
                        for one in asked[first : first + size]
                    ]
            except* WeftError as errors:
                raise errors.exceptions[0] from None
            found += [task.result() for task in tasks]
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize("name", decoders())
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_one(model: LocalModel, name: str, temperature: float) -> None:
    spec = Lossless(name, OPTIONS.get(name, ()))
    plain = answers(model, requests(temperature, AUTOREGRESSIVE), 1)
    try:
        alone = answers(model, requests(temperature, spec), 1)
    except (CapabilityError, SpecError) as missing:
        if name in NEED_NOTHING:
            raise
        pytest.skip(missing.message)
    together = answers(model, requests(temperature, spec), len(PROMPTS))
    for one in (alone, together):
        assert [c.token_ids for c in one] == [c.token_ids for c in plain]
        assert all(c.speculation is not None and c.speculation.fallback == "" for c in one)


@pytest.mark.parametrize("name", FAST)
def test_chains_of_drafts_are_exact_as_the_engine_is_by_default(
    embedded: LocalModel, name: str
) -> None:
    plain = answers(embedded, requests(0.8, AUTOREGRESSIVE), 1)
    alone = answers(embedded, requests(0.8, Lossless(name)), 1)
    together = answers(embedded, requests(0.8, Lossless(name)), len(PROMPTS))
    for one in (alone, together):
        assert [c.token_ids for c in one] == [c.token_ids for c in plain]
    assert any(c.speculation is not None and c.speculation.accepted for c in together)
