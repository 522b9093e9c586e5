"""A client that knows which blocks of its prompts a prefix cache could have had. Sends nothing.

vLLM keeps keys and values of full blocks, and never takes over the last token of a prompt. What a
request could find is what requests before it have computed: their prompts from their first token
on, their answers once they are complete, but for the last token, which was never read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Tokenizing,
)
from weft.core.values import Completion, Message


class SharedBlocks:
    """Implements `ModelClient` and `Tokenizing` over `client`, which it does not close.

    `extra` goes into every request. `shared_tokens`: prompt tokens so far in full blocks that were
    there already.
    """

    def __init__(
        self, client: ModelClient, block_tokens: int, extra: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(client, Tokenizing):
            raise TypeError(f"{client.model} does not tokenize")
        self._client = client
        self._tokens: Tokenizing = client
        self._block_tokens = block_tokens
        self._extra = extra or {}
        self._known: set[int] = set()
        self.shared_tokens = 0

    @property
    def model(self) -> str:
        return self._client.model

    async def capabilities(self) -> Capabilities:
        return await self._client.capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        prompt = request.prompt_token_ids or await self.encode_chat(request.messages)
        self.shared_tokens += self._shared(prompt)
        request = replace(request, extra={**request.extra, **self._extra})
        async with aclosing(self._client.generate(request)) as stream:
            async for event in stream:
                if isinstance(event, Completion):
                    self._known.update(self._chain((*prompt, *event.token_ids[:-1])))
                elif isinstance(event, Prefilled):
                    self._known.update(self._chain(prompt))
                yield event

    def _shared(self, prompt: Sequence[int]) -> int:
        """As many tokens as a cache without bounds would have."""
        chain = self._chain(prompt[:-1])
        found = next((n for n, block in enumerate(chain) if block not in self._known), len(chain))
        return found * self._block_tokens

    def _chain(self, ids: Sequence[int]) -> list[int]:
        size, last = self._block_tokens, 0
        chain: list[int] = []
        for start in range(0, len(ids) - size + 1, size):
            last = hash((last, tuple(ids[start : start + size])))
            chain.append(last)
        return chain

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        return await self._tokens.encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        return await self._tokens.encode_chat(messages, chat_template_kwargs=chat_template_kwargs)

    async def decode(self, token_ids: tuple[int, ...]) -> str:
        return await self._tokens.decode(token_ids)

    async def special_token(self, text: str) -> int | None:
        return await self._tokens.special_token(text)

    async def aclose(self) -> None:
        """Nothing of its own is open."""
