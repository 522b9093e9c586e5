"""The state that all threads of one thought share: model, rules, limits, counts, calls."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from weft.core.ids import NodeId
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    UsageMeter,
    further_sampling,
    slots_of,
    unrefused,
)
from weft.core.values import Completion, JsonSchema, Usage
from weft.engine import Inputs, Node, NodeContext, Policy, Retry
from weft.reasoning.chat.call import situated
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.fork_join import JoinResult
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.runtime.moves import ChildSpec
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import TokenCodec
from weft.reasoning.thought import ThoughtCounts, split_tokens

_RETRY: Final = Retry()


class DecodeCall:
    """A call of `model` with `request`, for at most `granted` tokens in all attempts.

    It keeps what was streamed, for the case that it is cancelled; `latest` counts the tokens of the
    latest attempt. `primed` is set once the prompt is computed, or the call has ended.
    """

    def __init__(self, model: ModelClient, request: ModelRequest, granted: int) -> None:
        self._model = model
        self._request = request
        self.granted = granted
        self.primed = asyncio.Event()
        self.completion: Completion | None = None
        self.streamed: list[int] = []
        self._texts: list[str] = []
        self.latest = 0
        self._under_way = False
        self._past = Usage()
        self._meter = UsageMeter(request)

    @property
    def text(self) -> str:
        """The streamed text of the latest attempt."""
        return "".join(self._texts)

    @property
    def usage(self) -> Usage:
        """The usage so far, in all attempts."""
        return self._past + self._streamed() if self._under_way else self._past

    @property
    def used(self) -> int:
        """The tokens generated so far, in all attempts."""
        return self.usage.completion_tokens

    @property
    def wasted(self) -> int:
        """The tokens of attempts without a completion."""
        return self.used - (0 if self.completion is None else self.latest)

    def node(self, node: NodeId, weight: float) -> Node:
        """The node that makes the call. It does not fail: an error leaves `completion` None."""
        policy = Policy(
            spends=True, resource=slots_of(self._model), retry=_RETRY, weight=weight, default=None
        )
        return Node(node, self._work, policy=policy, kind="model", recallable=False)

    async def _work(self, context: NodeContext, _: Inputs) -> None:
        self.streamed, self._texts, self.latest = [], [], 0
        self._meter = UsageMeter(self._request)
        if self.used >= self.granted:
            return
        request = situated(self._request, context, self.granted - self.used)
        self._under_way = True
        try:
            async with aclosing(self._model.generate(request)) as stream:
                async for event in stream:
                    self.primed.set()
                    self._take(context, event)
        finally:
            self.primed.set()
            self._account(context)

    def _take(self, context: NodeContext, event: ModelEvent) -> None:
        self._meter.take(event)
        if isinstance(event, Completion):
            self.completion = unrefused(event)
        elif isinstance(event, (TextDelta, ReasoningDelta)):
            count = len(event.token_ids) or 1
            self.latest += count
            self.streamed += event.token_ids
            self._texts.append(event.text)
            context.stream(event.text, count)

    def _account(self, context: NodeContext) -> None:
        spent = self._streamed()
        if self.completion is not None:
            usage = self._meter.usage
            # Servers that report no usage: count the ids, or the streamed pieces.
            self.latest = usage.completion_tokens or len(self.completion.token_ids) or self.latest
            spent = replace(usage, completion_tokens=self.latest, requests=max(1, usage.requests))
            context.decoded(self.completion.decoding)
        self._under_way = False
        self._past += spent
        context.spend(spent)

    def _streamed(self) -> Usage:
        """The usage of the current attempt, as far as it was streamed."""
        thought = self._meter.usage.reasoning_tokens
        prompt = len(self._request.prompt_token_ids)
        return Usage(prompt, self.latest, requests=1, reasoning_tokens=thought)


_MODULUS: Final = 2**31 - 1


class ThreadTree:
    """One thought: `name` is unique in a run. `exact`: the model supports placed tokens.

    `flat`: paths that should not see one another were joined in sequence.
    """

    def __init__(
        self,
        name: str,
        model: ModelClient,
        grammar: ProtocolGrammar,
        options: ThinkOptions,
        question: Question,
        tokens: TokenCodec,
        capabilities: Capabilities,
    ) -> None:
        self.name = name
        self.model = model
        self.grammar = grammar
        self.options = options
        self.question = question
        self.tokens = tokens
        self.window = capabilities.max_context_tokens
        self.exact = capabilities.placement
        self.structured = capabilities.structured_output
        self.flat = False
        self.prefill_extra = 0
        self._calls: list[DecodeCall] = []
        self._threads = 0
        self._forks = 0
        self._depth = 0
        self._width = 0

    def thread(self, place: str, spec: ChildSpec, depth: int, limit: int) -> Thread:
        self._threads += 1
        return Thread(place, spec, self.question, depth, limit, self.tokens.special)

    def forked(self, depth: int, width: int) -> None:
        """Count a fork of `width` threads at `depth`."""
        self._forks += 1
        self._depth = max(self._depth, depth)
        self._width = max(self._width, width)

    def joined(self, join: JoinResult) -> None:
        self.prefill_extra += join.again
        self.flat = self.flat or join.flat

    def call(
        self,
        context: TokenContext,
        stops: Sequence[str],
        granted: int,
        seed: int,
        schema: JsonSchema | None = None,
    ) -> DecodeCall:
        """A call that continues `context` until one of `stops`."""
        stop_ids, stop_texts = self.tokens.stops(stops)
        sampling = replace(
            further_sampling(self.options),
            max_tokens=granted,
            temperature=self.options.temperature,
            stop=stop_texts,
            stop_token_ids=stop_ids,
            seed=seed,
        )
        request = ModelRequest(
            prompt_token_ids=context.all_ids,
            placement=context.placed,
            sampling=sampling,
            schema=schema if self.structured else None,
            cache_prefix=self.name,
            extra=self.options.extra_body or {},
        )
        call = DecodeCall(self.model, request, granted)
        self._calls.append(call)
        return call

    def seed(self, place: str, number: int) -> int:
        """The seed of call `number` of the thread at `place`, the same in every run."""
        text = f"{self.options.seed}:{place}:{number}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % _MODULUS

    def counts(self, root: Thread) -> ThoughtCounts:
        usage = sum((call.usage for call in self._calls), Usage())
        return ThoughtCounts(
            total_tokens=usage.completion_tokens,
            cancelled_tokens=sum(call.wasted for call in self._calls),
            critical_path_tokens=root.record().critical_path_tokens,
            prefill_extra_tokens=self.prefill_extra,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            requests=usage.requests,
            forks=self._forks,
            threads=self._threads,
            depth=self._depth,
            width=self._width,
            **split_tokens(usage, usage.completion_tokens),
        )
