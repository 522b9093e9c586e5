"""Budget forcing (s1, arXiv 2501.19393): a thought of bounded length, then the answer.

The stream is watched. Where the thought reaches its bound, the stream is closed, the end of the
thought is written into the context, and the model continues from there. Every client whose model
takes and gives token ids uses this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from weft.core.errors import ModelRequestError
from weft.core.ports.metering import UsageMeter
from weft.core.ports.model import (
    Delta,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    Tokenizing,
    ToolCallDelta,
)
from weft.core.values import Completion, Usage
from weft.serving.deadline import Deadline
from weft.serving.text.reasoning_forms import TAGS, ReasoningTags, opened_thought
from weft.serving.thinking.watch import ThoughtWatch

Ask = Callable[[ModelRequest], AsyncGenerator[ModelEvent, None]]
"""Streams the answer to a request without `thinking_tokens`."""

_OPENING_TOKENS: Final = 8
_SEEDS: Final = 2**63


async def think_within(
    request: ModelRequest,
    ask: Ask,
    tokens: Tokenizing,
    *,
    model: str,
    money: Callable[[Usage], float] | None = None,
) -> AsyncGenerator[ModelEvent, None]:
    """The answer to `request`, after a thought of at most `thinking_tokens` tokens.

    Its tags count among its tokens. The thought comes as reasoning. What ends it is among the token
    ids of the completion, and nowhere else. A model without tags for thoughts answers as it is, and
    so does one that continues an answer. Under a schema or grammar the model thinks only where its
    prompt has opened a thought, and freely; then the answer is constrained. `model` is the model's
    name. `money` prices a stream that is closed before the server reports its usage.

    Raises: `ModelRequestError` for a negative bound; what `ask` and `tokens` raise.
    """
    prompt = request.prompt_token_ids or await tokens.encode_chat(
        request.messages, chat_template_kwargs=request.template_kwargs
    )
    if (request.sampling.thinking_tokens or 0) < 0:
        raise ModelRequestError(f"thinking_tokens cannot be {request.sampling.thinking_tokens}")
    begun = opened_thought(await tokens.decode(prompt[-_OPENING_TOKENS:]))
    opened = begun is not None
    form = await _form((begun,) if begun else (TAGS["think"], TAGS["mistral"]), tokens)
    constrained = request.schema is not None or request.grammar is not None
    if not opened and (constrained or form.ids[1] is None or request.continues):
        plain = replace(request, sampling=replace(request.sampling, thinking_tokens=None))
        answer = ask(plain)
    else:
        by_ids = replace(request, messages=(), prompt_token_ids=prompt)
        answer = _BoundedThought(by_ids, ask, tokens, model, form, money).generate(
            opened=opened, free=constrained
        )
    async with aclosing(answer) as stream:
        async for event in stream:
            yield event


@dataclass(frozen=True, slots=True)
class _Form:
    """The tags of a model's thoughts, and their tokens: first and last tag, None for no token."""

    tags: ReasoningTags
    ids: tuple[int | None, int | None]

    @property
    def end(self) -> str:
        """The text that ends a thought."""
        return f"\n{self.tags.closes[0]}\n\n"


async def _form(candidates: Sequence[ReasoningTags], tokens: Tokenizing) -> _Form:
    """The first form whose last tag is a token of the model, or the last form."""
    for tags in candidates:
        last = await tokens.special_token(tags.closes[0])
        found = _Form(tags, (await tokens.special_token(tags.opens[0]), last))
        if last is not None:
            break
    return found


class _BoundedThought:
    """One answer to `request`, whose prompt is token ids."""

    def __init__(
        self,
        request: ModelRequest,
        ask: Ask,
        tokens: Tokenizing,
        model: str,
        form: _Form,
        money: Callable[[Usage], float] | None,
    ) -> None:
        self._request = request
        self._ask = ask
        self._tokens = tokens
        self._model = model
        self._form = form
        self._money = money
        self._most = request.sampling.thinking_tokens or 0
        self._usage = Usage()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._watch = ThoughtWatch(opened=False, tags=form.tags)
        self._ended: Completion | None = None

    async def generate(self, *, opened: bool, free: bool) -> AsyncGenerator[ModelEvent, None]:
        """`free`: the thought is not constrained, so it is a request of its own."""
        deadline = Deadline(self._request.timeout_s)
        self._watch = ThoughtWatch(opened=opened, tags=self._form.tags)
        if self._most or not opened:
            async with aclosing(self._think(self._first(free=free), free=free)) as thought:
                async for event in thought:
                    yield event
        if self._ended is not None and not (free or self._watch.thinking):
            yield self._whole(self._ended)
            return
        ids, closing = await self._closed_thought()
        async with aclosing(self._answer(ids, closing, deadline.left_s)) as answer:
            async for event in answer:
                yield event

    def _first(self, *, free: bool) -> ModelRequest:
        """The request that begins with the thought."""
        request, sampling = self._request, self._request.sampling
        longest = self._most if free else sampling.most_tokens
        plain = replace(sampling, thinking_tokens=None, max_tokens=longest)
        if not free:
            return replace(request, sampling=plain)
        return replace(request, sampling=replace(plain, stop=()), schema=None, grammar=None)

    async def _think(self, first: ModelRequest, *, free: bool) -> AsyncGenerator[ModelEvent, None]:
        """The stream up to the end of the answer, or of a thought that takes too long."""
        watch, meter = self._watch, UsageMeter(first)
        async with aclosing(self._ask(first)) as stream:
            async for event in stream:
                meter.take(event)
                if isinstance(event, Completion):
                    self._ended = event
                elif isinstance(event, Prefilled):
                    yield event
                else:
                    for piece in watch.take(await self._trimmed(await self._spelt(event))):
                        yield self._noted(piece)
                    if self._over(free=free):
                        break
        for piece in watch.end():
            yield self._noted(piece)
        self._usage = meter.usage
        if self._ended is None:
            self._usage = replace(meter.usage, money=self._money(meter.usage) if self._money else 0)
            self._ended = Completion("", "length", model=self._model)

    def _over(self, *, free: bool) -> bool:
        """Whether nothing more is to be read: the thought is too long, or the answer complete."""
        watch, longest = self._watch, self._request.sampling.max_tokens
        if watch.thinking:
            return not watch.holding and watch.thought >= self._most
        return free or (longest is not None and watch.answer >= longest)

    async def _spelt(self, delta: Delta) -> Delta:
        """`delta` with the tags that a server leaves out of texts as special tokens."""
        ids = delta_ids(delta)
        if not isinstance(delta, TextDelta) or not any(tag in ids for tag in self._form.ids):
            return delta
        if any(tag in delta.text for tag in (*self._form.tags.opens, *self._form.tags.closes)):
            return delta
        return replace(delta, text=await self._tokens.decode(ids))

    async def _trimmed(self, delta: Delta) -> Delta:
        """`delta` without the tokens by which the answer would be longer than `max_tokens`."""
        longest, ids = self._request.sampling.max_tokens, delta_ids(delta)
        if longest is None or not isinstance(delta, TextDelta) or not self._watch.answering:
            return delta
        keep = longest - self._watch.answer
        if len(ids) <= keep:
            return delta
        text = await self._tokens.decode(ids[:keep])
        text = text if delta.text.startswith(text) else ""
        return TextDelta(text, ids[:keep], delta.logprobs[:keep], delta.top_logprobs[:keep])

    async def _closed_thought(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids of the thought that were generated, and those that end it."""
        ids, ended = tuple(self._watch.ids), self._ended
        own_end = ended is not None and ended.finish_reason == "stop"
        if self._watch.thinking:
            if own_end and ids and not isinstance(ended and ended.stop, str):
                ids = ids[:-1]  # the token with which the model ended its answer
        elif self._form.ids[1] in ids:
            ids = ids[: ids.index(self._form.ids[1])]
        else:
            return ids, ()  # the model wrote the tag in several tokens
        return ids, await self._tokens.encode(self._form.end, special=True)

    async def _answer(
        self, ids: tuple[int, ...], closing: tuple[int, ...], left_s: float | None
    ) -> AsyncGenerator[ModelEvent, None]:
        """The answer after a thought that was ended."""
        sampling, before = self._request.sampling, self._usage
        seed, most = sampling.seed, sampling.most_tokens
        if most is not None:  # tags count, too
            most = max(1, min(sampling.max_tokens or most, most - before.completion_tokens))
        if seed is not None and ids:  # or it would repeat the random numbers of the thought
            seed = (seed + len(ids)) % _SEEDS
        request = replace(
            self._request,
            prompt_token_ids=self._request.prompt_token_ids + ids + closing,
            sampling=replace(sampling, thinking_tokens=None, seed=seed, max_tokens=most),
            timeout_s=left_s,
        )
        async with aclosing(self._ask(request)) as stream:
            async for event in stream:
                if isinstance(event, Completion):
                    self._usage = _together(before, event.usage)
                    yield self._joined(event, closing)
                elif not isinstance(event, Prefilled):
                    yield self._noted(event)
                elif not before.requests:
                    yield Prefilled(self._request.prompt_token_ids)

    def _noted(self, piece: Delta) -> Delta:
        if isinstance(piece, TextDelta):
            self._text.append(piece.text)
        elif isinstance(piece, ReasoningDelta):
            self._reasoning.append(piece.text)
        return piece

    def _whole(self, last: Completion) -> Completion:
        """The completion of a thought and an answer from one stream."""
        watch, usage = self._watch, self._usage
        thought = min(watch.thought, usage.completion_tokens) if watch.ids else None
        return replace(
            last,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            token_ids=last.token_ids or tuple(watch.ids),
            logprobs=last.logprobs or tuple(watch.logprobs),
            top_logprobs=last.top_logprobs or tuple(watch.top_logprobs),
            usage=replace(usage, reasoning_tokens=thought if watch.thought else 0),
        )

    def _joined(self, last: Completion, closing: tuple[int, ...]) -> Completion:
        """The completion of a thought that was ended, and of the answer `last` to it."""
        watch = self._watch
        logprobs, largest = tuple(watch.logprobs), tuple(watch.top_logprobs)
        return replace(
            last,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            token_ids=(*watch.ids, *closing, *last.token_ids),
            logprobs=(*logprobs, *([0.0] * len(closing)), *last.logprobs) if logprobs else (),
            top_logprobs=(*largest, *([()] * len(closing)), *last.top_logprobs) if largest else (),
            usage=self._usage,
        )


def delta_ids(delta: Delta) -> tuple[int, ...]:
    """The token ids of a delta."""
    return () if isinstance(delta, ToolCallDelta) else delta.token_ids


def _together(thought: Usage, answer: Usage) -> Usage:
    """The usage of both requests; the prompt counts once."""
    if not thought.requests:
        return replace(answer, reasoning_tokens=0)
    return replace(
        thought + answer,
        prompt_tokens=thought.prompt_tokens,
        cached_tokens=thought.cached_tokens,
        reasoning_tokens=thought.completion_tokens,
    )
