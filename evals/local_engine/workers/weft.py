"""weft's embedded model through `LocalModel`, as a workflow calls it."""

from __future__ import annotations

from evals.local_engine.load import STREAMS, begin, long_text, questions, tell

LOAD, BEGUN = begin()

import asyncio  # noqa: E402 - the time of the imports counts
import os  # noqa: E402
import time  # noqa: E402
from contextlib import aclosing  # noqa: E402

from weft.core.ports import ModelRequest, Sampling, complete  # noqa: E402
from weft.core.values import Message, Usage  # noqa: E402
from weft.serving.local import LocalModel, LocalOptions  # noqa: E402


async def ask(model: LocalModel, text: str, tokens: int) -> Usage:
    """One greedy request that writes so many tokens."""
    sampling = Sampling(max_tokens=tokens, temperature=0.0)
    request = ModelRequest(
        messages=(Message("user", text),), sampling=sampling, extra={"ignore_eos": True}
    )
    return (await complete(model, request)).usage


async def streams(model: LocalModel, count: int) -> float:
    """Tokens a second of all streams together."""
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ask(model, text, LOAD.tokens)) for text in questions(LOAD, count)
        ]
    written = sum(task.result().completion_tokens for task in tasks)
    return written / (time.perf_counter() - begun)


async def measure() -> None:
    """Measure all cases. The system is in `EVAL_QUANTIZATION`: `defaults` or a quantization."""
    quantization = os.environ.get("EVAL_QUANTIZATION", "auto")
    threads = None if quantization == "defaults" else LOAD.threads
    kept = "auto" if quantization == "defaults" else quantization
    options = LocalOptions(threads=threads, quantization=kept)  # type: ignore[arg-type]
    async with aclosing(LocalModel(LOAD.model, options)) as model:
        await ask(model, "Hello.", 1)
        first_token_s = time.perf_counter() - BEGUN
        await ask(model, "Hello again.", 8)
        one = await streams(model, 1)
        many = await streams(model, STREAMS)
        begun = time.perf_counter()
        read = await ask(model, long_text(LOAD), 1)
        prompt = read.prompt_tokens / (time.perf_counter() - begun)
    tell(first_token_s, {"stream_1": one, "streams_32": many, "prompt": prompt})


asyncio.run(measure())
