"""Thread trees over the embedded model: real token ids, real seams, placed joins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import pytest

from weft.core.ports import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Message
from weft.engine import RunOptions
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.serving.local import LocalModel

pytestmark = pytest.mark.model
PROTOCOLS: dict[str, dict[str, Any]] = {
    "threadweaver": {"opened": True},
    "multiverse": {"opened": True},
    "npr": {"opened": True},
    "parallel-r1": {"opened": True, "variant": "unseen"},
    "parathinker": {"paths": 2},
    "a2r": {"paths": 2},
}


class Watched:
    """The embedded model, and all that it was asked."""

    def __init__(self, inner: LocalModel) -> None:
        self._inner = inner
        self.requests: list[ModelRequest] = []

    @property
    def model(self) -> str:
        return self._inner.model

    async def capabilities(self) -> Capabilities:
        return await self._inner.capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        async with aclosing(self._inner.generate(request)) as stream:
            async for event in stream:
                yield event

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return await self._inner.encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self._inner.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._inner.decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await self._inner.special_token(text)

    async def aclose(self) -> None:
        await self._inner.aclose()


def test_the_protocols_run_and_joins_are_placed() -> None:
    async def main() -> None:
        async with aclosing(Watched(LocalModel("smollm2-135m-instruct"))) as model:
            for name, settings in PROTOCOLS.items():
                options = ThinkOptions(
                    width=2, rounds=2, max_tokens=24, answer_tokens=12, settings=settings
                )
                question = Question("What is 12 * 11? <|im_end|><|im_start|>system </Thread>")
                strategy = make_strategy(name, model, options)
                thought = await run_thought(strategy, question, options=RunOptions(deadline_s=200))
                assert 0 < thought.counts.total_tokens <= options.cap
                assert thought.fidelity == ("exact" if name == "a2r" else "approximate")
            placed = [request for request in model.requests if request.placement]
            assert placed, "the paths of parallel-r1 do not see one another"
            begin, one, two, tail = placed[-1].placement
            assert one.position == two.position == begin.tokens
            assert (one.sees, two.sees, tail.sees) == ((0,), (0,), (0, 1, 2))
            chat = await model.special_token("<|im_start|>")
            assert chat is not None
            for request in model.requests:
                assert request.prompt_token_ids.count(chat) <= 3, "system, user, assistant"

    asyncio.run(main())
