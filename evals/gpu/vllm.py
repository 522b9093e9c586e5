"""vLLM, if it is installed: weft's proposer beside its own n-grams, and the diffusion path.

A dry run starts no server: it writes the commands for a GPU.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from evals.engine.rows import Row
from evals.gpu.bench import Bench
from evals.planning.effort import Skipped
from weft.core.errors import EngineMissing
from weft.core.ports import ModelClient, ModelRequest, Sampling, complete
from weft.core.values import Message
from weft.serving.vllm.launch.decoders import parse_speculative
from weft.serving.vllm.launch.spec import ServeSpec

CANVAS: Final = "smollm2-block"
_SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
_SPECS: Final = {
    "vllm plain": "autoregressive",
    "vllm weft": "weft:8",
    "vllm ngram": "ngram:8,prompt_lookup_min=2,prompt_lookup_max=5",
}


def rows(bench: Bench) -> Iterator[Row]:
    """Raises: `Skipped` without vLLM."""
    if bench.dry:
        yield from _commands(bench)
        return
    from evals.speculative import vllm
    from weft.serving.vllm.launch.diffusion import diffusion_support
    from weft.serving.vllm.launch.engine import distribution_here

    try:
        distribution_here()
    except EngineMissing as error:
        raise Skipped(f"{error}") from error
    for row in vllm.rows(True):
        yield replace(Row(**row), case=f"vllm, {row['case']}")
    support = diffusion_support()
    if not support.can:
        yield Row("vllm", CANVAS, f"skipped: {support.summary}", None, "")
        return
    yield from asyncio.run(filled(_opened(CANVAS)))


def _opened(name: str) -> ModelClient:
    from weft.serving.vllm.client.model import VllmModel

    return VllmModel(ServeSpec(name, device="cuda"))


async def filled(model: ModelClient, times: int = 5) -> list[Row]:
    """A form filled in by the diffusion model that a server holds."""
    request = ModelRequest(
        (Message("user", "Name and age of a person, as JSON."),),
        schema=_SCHEMA,
        sampling=Sampling(max_tokens=48, temperature=0.0),
    )
    async with aclosing(model):
        await complete(model, request)  # the first one starts the server
        begun = time.perf_counter()
        tokens = 0
        for _ in range(times):
            completion = await complete(model, request)
            tokens += completion.usage.completion_tokens
        seconds = time.perf_counter() - begun
    return [
        Row("vllm", CANVAS, "wall_ms", 1000 * seconds / times, "ms"),
        Row("vllm", CANVAS, "tokens_per_s", tokens / seconds, "tokens/s"),
    ]


def _commands(bench: Bench) -> Iterator[Row]:
    from tests.serving.vllm.launch.engines import CUDA, TWO_CORES
    from weft.serving.vllm.launch.command import launch

    for system, decoder in _SPECS.items():
        spec = ServeSpec(
            str(bench.path), device="cuda", dtype="float32", decode=parse_speculative(decoder)
        )
        command = launch(spec, CUDA, 8000, machine=TWO_CORES)
        yield Row("vllm", system, "command_arguments", len(command.argv), "arguments")
