"""One decode of a thread as a node, and what it cost, however it ends. Knows no protocol."""

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
    Sampling,
    TextDelta,
    unrefused,
)
from weft.core.values import Completion, JsonSchema, Usage
from weft.engine import Inputs, Node, NodeContext, Policy, Retry
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime.context import TokenContext
from weft.reasoning.runtime.fork_join import JoinResult
from weft.reasoning.runtime.grammar import ProtocolGrammar
from weft.reasoning.runtime.moves import ChildSpec
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.runtime.token_codec import TokenCodec
from weft.reasoning.thought import ThoughtCounts

_RETRY: Final = Retry()
_GRACE_S: Final = 1.0


class DecodeCall:
    """`request` to `model`, allowed to generate `granted` tokens in all of its attempts.

    What is streamed is kept here, so that nothing is lost when the call is cancelled; `latest`
    counts the tokens of the latest attempt. `primed` is set once the prompt is computed, or the
    call has ended.
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

    @property
    def text(self) -> str:
        """The text of the latest attempt, as far as it was streamed."""
        return "".join(self._texts)

    @property
    def usage(self) -> Usage:
        """What it has consumed so far, in all attempts."""
        return self._past + self._streamed() if self._under_way else self._past

    @property
    def used(self) -> int:
        """Tokens that were generated so far, in all attempts."""
        return self.usage.completion_tokens

    @property
    def wasted(self) -> int:
        """Those of attempts that came to no completion."""
        return self.used - (0 if self.completion is None else self.latest)

    def node(self, node: NodeId, weight: float) -> Node:
        """The node that makes the call. It does not fail: without `completion` it came to none."""
        policy = Policy(
            spends=True, resource=self._model.model, retry=_RETRY, weight=weight, default=None
        )
        return Node(node, self._work, policy=policy, kind="model", recallable=False)

    async def _work(self, context: NodeContext, _: Inputs) -> None:
        self.streamed, self._texts, self.latest = [], [], 0
        if self.used >= self.granted:
            return
        request = self._situated(context)
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
            told = self.completion.usage
            # Where the server does not say, it is counted here.
            self.latest = told.completion_tokens or len(self.completion.token_ids) or self.latest
            spent = replace(told, completion_tokens=self.latest, requests=max(1, told.requests))
            context.decoded(self.completion.decoding)
        self._under_way = False
        self._past += spent
        context.spend(spent)

    def _streamed(self) -> Usage:
        """What the attempt under way has consumed, as far as it was seen."""
        return Usage(len(self._request.prompt_token_ids), self.latest, requests=1)

    def _situated(self, context: NodeContext) -> ModelRequest:
        """The request with what its node knows, and no more tokens than are left for it."""
        most = self.granted - self.used
        left = context.tokens_left()
        if left is not None:
            most = max(1, min(most, left))
        left_s = context.time_left()
        return replace(
            self._request,
            sampling=replace(self._request.sampling, max_tokens=most),
            priority=context.priority,
            program=context.program,
            timeout_s=None if left_s is None else left_s + _GRACE_S,
        )


_MODULUS: Final = 2**31 - 1


class ThreadTree:
    """One thought: `name` is unique in a run. `exact`: the model places tokens where it is told.

    `flat`: paths were joined that should not see one another, but do.
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
        """Count a fork of `width` threads, which are `depth` deep."""
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
        """A call that goes on after `context`, until one of `stops`."""
        stop_ids, stop_texts = self.tokens.stops(stops)
        sampling = Sampling(
            max_tokens=granted,
            temperature=self.options.temperature,
            top_p=self.options.top_p,
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
        )
        call = DecodeCall(self.model, request, granted)
        self._calls.append(call)
        return call

    def seed(self, place: str, number: int) -> int:
        """The seed of call `number` of the thread at `place`: the same in every run."""
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
        )
