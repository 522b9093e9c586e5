"""Model clients whose calls wait for their limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from weft.core.errors import ModelError
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Startable,
    Tokenizing,
    UsageMeter,
    Warmable,
)
from weft.core.values import Message
from weft.durability.calls.history import fitted
from weft.durability.rates.limiter import RateLimiter

_CHARACTERS_PER_TOKEN: Final = 3
_ANSWER_TOKENS: Final = 1_024
"""What is reserved for an answer without `max_tokens`."""


def limited_client(inner: ModelClient, limiter: RateLimiter) -> ModelClient:
    """`inner`, with its optional ports, whose calls `limiter` admits; closed as `inner` is."""
    made: ModelClient = fitted(LimitedClient, CLIENT_PORTS, inner)(inner, limiter)
    return made


def estimated_tokens(request: ModelRequest) -> int:
    """The tokens of prompt and answer together, rather too many than too few."""
    prompt = len(request.prompt_token_ids)
    if not prompt:
        characters = sum(len(str(message.content)) for message in request.messages)
        prompt = characters // _CHARACTERS_PER_TOKEN + 4 * len(request.messages)
    answer = request.sampling.most_tokens
    return prompt + (_ANSWER_TOKENS if answer is None else answer)


class LimitedClient:
    """Implements `ModelClient`."""

    def __init__(self, inner: Any, limiter: RateLimiter) -> None:
        self._inner = inner
        self._limiter = limiter

    @property
    def model(self) -> str:
        model: str = self._inner.model
        return model

    async def capabilities(self) -> Capabilities:
        able: Capabilities = await self._inner.capabilities()
        return able

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        meter = UsageMeter(request)
        async with self._limiter.admit(estimated_tokens(request)) as reservation:
            try:
                async with aclosing(self._inner.generate(request)) as stream:
                    async for event in stream:
                        meter.take(event)
                        yield event
            except ModelError as error:
                meter.failed(error)
                raise
            finally:
                reservation.tokens = meter.usage.tokens

    async def aclose(self) -> None:
        await self._inner.aclose()


class _LimitedStartable(LimitedClient):
    async def start(self, show: Callable[[str], None] | None = None) -> None:
        await self._inner.start(show)


class _LimitedWarmable(LimitedClient):
    async def warm(self, request: ModelRequest) -> None:
        await self._inner.warm(request)


class _LimitedTokenizing(LimitedClient):
    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        ids: tuple[int, ...] = await self._inner.encode(text, special=special)
        return ids

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        ids: tuple[int, ...] = await self._inner.encode_chat(
            messages, chat_template_kwargs=chat_template_kwargs
        )
        return ids

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        text: str = await self._inner.decode(token_ids)
        return text

    async def special_token(self, text: str) -> int | None:
        token: int | None = await self._inner.special_token(text)
        return token


CLIENT_PORTS: Final[Mapping[type, type]] = {
    Startable: _LimitedStartable,
    Tokenizing: _LimitedTokenizing,
    Warmable: _LimitedWarmable,
}
