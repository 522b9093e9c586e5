"""Threads on a real server: siblings find what they share in its cache, by its own count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from evals.reasoning.fork_join import Shape
from evals.reasoning.parallelism import Bench, block_tokens
from tests.live_vllm import NAME, LiveVllm
from weft.serving.openai import OpenAIModel

pytestmark = pytest.mark.vllm
SHAPE = Shape(6, prompt=300, before=20, child=12, after=8)


def on_server(live: LiveVllm, body: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with aclosing(OpenAIModel(live.base_url, NAME)) as server:
            await body(Bench(server, await block_tokens(live.base_url), SHAPE))

    asyncio.run(main())


def test_siblings_find_the_full_blocks_that_they_share(live_vllm: LiveVllm) -> None:
    async def body(bench: Bench) -> None:
        hits, shared = await bench.siblings(1)
        assert shared == 6 * (319 // bench.block) * bench.block > 0
        assert hits >= 0.95 * shared

    on_server(live_vllm, body)


def test_the_threads_of_the_runtime_find_them_too(live_vllm: LiveVllm) -> None:
    async def body(bench: Bench) -> None:
        found = await bench.runtime(2)
        assert found.shared > 0
        assert found.hits >= 0.95 * found.shared
        assert found.counts.total_tokens == SHAPE.generated
        assert found.counts.critical_path_tokens == SHAPE.critical_path

    on_server(live_vllm, body)
