from __future__ import annotations

import asyncio

import pytest

from evals.reasoning.fork_join import OneFork, Shape, fork_join, headers, words
from evals.reasoning.shared_blocks import SharedBlocks
from weft.core.ports import ModelRequest, Sampling, complete
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.strategy import run_thought
from weft.testing import FakeClock, FakeModel, TokenModel

SHAPE = Shape(3, prompt=100, before=20, child=30, after=10)


def endless(ids: tuple[int, ...], request: ModelRequest) -> str:
    """As many letters as are asked for, other ones for every prompt."""
    return chr(97 + hash(ids) % 26) * (request.sampling.max_tokens or 0)


def client() -> tuple[TokenModel, SharedBlocks]:
    model = TokenModel(endless, prefill_s=0.001, per_token_s=0.01)
    return model, SharedBlocks(model, 16)


def test_the_tree_has_its_shape_and_shares_what_a_cache_finds() -> None:
    model, noted = client()
    clock = FakeClock()

    async def main() -> tuple[int, ...]:
        prompt = await words(noted, SHAPE.prompt, 1)
        begun = await headers(noted, SHAPE)
        return await fork_join(noted, SHAPE, prompt, begun)

    whole = clock.run(main())
    header = len("\n\nPart 0:")
    assert len(whole) == 100 + 20 + 3 * (header + 30) + 10
    assert [len(request.prompt_token_ids) for request in model.requests] == [
        100,
        *[120 + header] * 3,
        120 + 3 * (header + 30),
    ]
    # 119 tokens of the trunk have been read when it forks; the join also finds the first child.
    assert noted.shared_tokens == 3 * 112 + (120 + header + 29) // 16 * 16


def test_the_runtime_walks_the_same_tree() -> None:
    model, noted = client()
    options = ThinkOptions(width=3, max_tokens=SHAPE.generated, answer_tokens=1, temperature=0.0)
    strategy = GrammarStrategy(OneFork(SHAPE), noted, options)
    clock = FakeClock()
    thought = clock.run(run_thought(strategy, Question("q" * 100), clock=clock))
    counts = thought.counts
    assert counts.total_tokens == SHAPE.generated == 120
    assert counts.critical_path_tokens == SHAPE.critical_path == 60
    assert (counts.forks, counts.width, counts.requests) == (1, 3, 5)
    assert counts.prefill_extra_tokens > 0
    assert len(model.requests[1].prompt_token_ids) == 120 + len("\n\nPart 0:")
    assert counts.cached_tokens == noted.shared_tokens


def test_what_is_still_being_read_is_not_shared() -> None:
    _, noted = client()

    async def main() -> None:
        request = ModelRequest(prompt_token_ids=(65,) * 64, sampling=Sampling(max_tokens=4))
        async with asyncio.TaskGroup() as both:
            both.create_task(complete(noted, request))
            both.create_task(complete(noted, request))

    FakeClock().run(main())
    assert noted.shared_tokens == 0


def test_a_client_without_tokens_is_refused() -> None:
    with pytest.raises(TypeError, match="tokenize"):
        SharedBlocks(FakeModel(["x"]), 16)
