"""Token usage of a model call, also where the call fails or is cancelled."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from weft.core.errors import ModelError, ModelUnavailable
from weft.core.generated_text import ThoughtCounter
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
    """Meters one `request`: `take` each event of its answer, and report an error with `failed`.

    `usage` is valid at any time. It is the model's own count, from its completion or its error.
    Without either, the meter counts generated tokens, and prompt tokens by the ids that were sent
    or reported; without ids it estimates the prompt from the length of its text (`estimated`). A
    request without any event counts no prompt. Tokens of a thought that the model does not report
    are counted by their ids; without ids they are unknown (None).
    """

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._reported: Usage | None = None
        self._prompt = len(request.prompt_token_ids)
        self._begun = False
        self._thought = ThoughtCounter()
        self._reasoning = 0
        self._ids = 0
        self._thinks = False
        self.generated = 0

    def take(self, event: ModelEvent) -> None:
        """Count an event of the answer; `generated` are its tokens so far."""
        self._begun = True
        if isinstance(event, Completion):
            self._reported = event.usage
        elif isinstance(event, Prefilled):
            self._prompt = len(event.prompt_token_ids) or self._prompt
        elif isinstance(event, TextDelta | ReasoningDelta):
            tokens = len(event.token_ids) or 1
            self.generated += tokens
            self._ids += len(event.token_ids)
            if isinstance(event, ReasoningDelta):
                self._thinks = True
                self._reasoning += len(event.token_ids)
            else:
                self._thought.add(event.text, len(event.token_ids))

    def failed(self, error: ModelError) -> None:
        """The call ended with `error`."""
        self._reported = error.usage or self._reported

    async def rest(self, events: AsyncGenerator[ModelEvent, None]) -> None:
        """Read on for a moment in the stream of an answer that is no longer needed.

        Many servers report usage only at the end of a stream; one that is about to end, as after
        a complete answer, is not cancelled just before. Errors are ignored.
        """
        try:
            async with asyncio.timeout(_REST_S):
                async for event in events:
                    self.take(event)
        except (ModelError, TimeoutError):
            return

    @property
    def complete(self) -> bool:
        """Whether the model itself has reported the call's usage."""
        return self._reported is not None

    @property
    def estimated(self) -> bool:
        """Whether the prompt's tokens in `usage` are an estimate."""
        return self._begun and not (self._prompt or self.complete)

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        reported = self._reported
        if reported is None:
            prompt = self._estimate() if self.estimated else self._prompt if self._begun else 0
            reported = Usage(prompt, self.generated, requests=1)
        if reported.reasoning_tokens:
            return reported
        if not (self._thinks or self._thought.found):
            return reported
        thought = min(self._reasoning + self._thought.tokens, reported.completion_tokens)
        return replace(reported, reasoning_tokens=thought if self._ids else None)

    def _estimate(self) -> int:
        texts = [message.content for message in self._request.messages]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        rich = [message for message in self._request.messages if message.parts]
        media = sum(part.tokens for message in rich for part in message.media)
        return math.ceil(size / _BYTES_PER_TOKEN) + media


async def complete(
    client: ModelClient,
    request: ModelRequest,
    on_delta: Callable[[Delta], None] | None = None,
    meter: UsageMeter | None = None,
) -> Completion:
    """Run `request` to its end and return the completion; `on_delta` receives every piece.

    `meter` counts the usage, however the call ends. Cancelling the caller closes the stream.
    Raises: as `ModelClient.generate` and `unrefused`.
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
