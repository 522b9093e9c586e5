"""What a call of a model consumes, also where it fails or is ended early. Asks no model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from weft.core.errors import ModelError, ModelUnavailable
from weft.core.ports.model import (
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    unrefused,
)
from weft.core.values import Completion, Usage

_BYTES_PER_TOKEN: Final = 4
_REST_S: Final = 0.25


class UsageMeter:
    """Counts one `request` while it is answered: `take` its events, and how it `failed`, if so.

    `usage` holds at any time. It is what the model says itself, in its completion or its error.
    Without either the tokens that came are counted, and those of the prompt: by the ids that were
    sent or told, else from the length of its text, which makes it `estimated`. A request of which
    nothing came has no prompt.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._told: Usage | None = None
        self._prompt = len(request.prompt_token_ids)
        self._begun = False
        self.generated = 0

    def take(self, event: ModelEvent) -> None:
        """Count an event of the answer; `generated` are its tokens so far."""
        self._begun = True
        if isinstance(event, Completion):
            self._told = event.usage
        elif isinstance(event, Prefilled):
            self._prompt = len(event.prompt_token_ids) or self._prompt
        elif isinstance(event, TextDelta | ReasoningDelta):
            self.generated += len(event.token_ids) or 1

    def failed(self, error: ModelError) -> None:
        """The call ended with `error`."""
        self._told = error.usage or self._told

    async def rest(self, events: AsyncGenerator[ModelEvent, None]) -> None:
        """Read on for a moment in the stream of an answer that nobody needs any more.

        Many servers tell what a request consumed at its end only; one that is about to end, as
        after a complete answer, is not cut off for that. What goes wrong there is no news.
        """
        try:
            async with asyncio.timeout(_REST_S):
                async for event in events:
                    self.take(event)
        except (ModelError, TimeoutError):
            return

    @property
    def complete(self) -> bool:
        """Whether the model itself has said what the call consumed."""
        return self._told is not None

    @property
    def estimated(self) -> bool:
        """Whether the prompt's tokens in `usage` are an estimate."""
        return self._begun and not (self._prompt or self.complete)

    @property
    def usage(self) -> Usage:
        """What was consumed so far."""
        if self._told is not None:
            return self._told
        prompt = self._estimate() if self.estimated else self._prompt if self._begun else 0
        return Usage(prompt, self.generated, requests=1)

    def _estimate(self) -> int:
        texts = [message.content for message in self._request.messages]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return math.ceil(size / _BYTES_PER_TOKEN)


async def complete(
    client: ModelClient,
    request: ModelRequest,
    on_delta: Callable[[Delta], None] | None = None,
    meter: UsageMeter | None = None,
) -> Completion:
    """Run `request` to its end and return the completion; `on_delta` sees every piece.

    `meter` counts what that takes, however it ends. Cancelling the caller closes the stream. Raises
    what `ModelClient.generate` raises, and what `unrefused` does.
    """
    meter = meter or UsageMeter(request)
    try:
        async with aclosing(client.generate(request)) as stream:
            async for event in stream:
                meter.take(event)
                if isinstance(event, Completion):
                    return unrefused(event)
                if on_delta is not None and not isinstance(event, Prefilled):
                    on_delta(event)
    except ModelError as error:
        meter.failed(error)
        raise
    raise ModelUnavailable(f"the stream of {client.model} ended without a completion")
