"""Separates the reasoning in a stream of text, for models whose client gets text alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from weft.core.ports.model import Delta, ModelEvent, ReasoningDelta, TextDelta
from weft.core.values import Completion
from weft.serving.text.formats import FoundCall, Piece
from weft.serving.text.splitter import Splitter


class _Separation:
    """Pieces with the token ids and log probabilities that came with their text, or before it."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter
        self._waiting = TextDelta("")
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._thought_tokens = 0

    def take(self, delta: TextDelta) -> list[Delta]:
        waiting = self._waiting
        self._waiting = TextDelta(
            "",
            waiting.token_ids + delta.token_ids,
            waiting.logprobs + delta.logprobs,
            waiting.top_logprobs + delta.top_logprobs,
        )
        return self._carried(self._splitter.feed(delta.text))

    def _carried(self, found: list[Piece]) -> list[Delta]:
        """The pieces `found`, the first of them with what waited."""
        pieces = [piece for piece in found if not isinstance(piece, FoundCall)]
        for piece in pieces:
            texts = self._texts if isinstance(piece, TextDelta) else self._thoughts
            texts.append(piece.text)
        if not pieces or self._splitter.holding:
            return [*pieces]
        first, *rest = pieces
        waiting, self._waiting = self._waiting, TextDelta("")
        if isinstance(first, TextDelta):
            return [replace(waiting, text=first.text), *rest]
        self._thought_tokens += len(waiting.token_ids)
        return [ReasoningDelta(first.text, waiting.token_ids), *rest]

    def finish(self, completion: Completion) -> list[ModelEvent]:
        rest: list[ModelEvent] = [*self._carried(self._splitter.end())]
        waiting, self._waiting = self._waiting, TextDelta("")
        if waiting.token_ids or waiting.logprobs:
            rest.append(waiting)
        usage = completion.usage
        counted = bool(completion.token_ids) or not self._thoughts
        thought = min(self._thought_tokens, usage.completion_tokens) if counted else None
        whole = replace(
            completion,
            text="".join(self._texts),
            reasoning="".join(self._thoughts),
            usage=replace(usage, reasoning_tokens=thought),
        )
        return [*rest, whole]


async def separated(
    events: AsyncGenerator[ModelEvent, None], splitter: Splitter
) -> AsyncGenerator[ModelEvent, None]:
    """`events` with the reasoning in their text as reasoning. Closing it closes `events`."""
    separation = _Separation(splitter)
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                for piece in separation.take(event):
                    yield piece
            elif isinstance(event, Completion):
                for last in separation.finish(event):
                    yield last
            else:
                yield event
