"""What all threads of one thought share: model, rules, caps and counts. Runs no thread."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from weft.core.ports import Capabilities, ModelClient, ModelRequest, Sampling
from weft.core.values import JsonSchema, Usage
from weft.reasoning.grammar import Grammar
from weft.reasoning.moves import ChildSpec
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.runtime.call import Call
from weft.reasoning.runtime.joining import Join
from weft.reasoning.thought import Counts
from weft.reasoning.thread.context import Context
from weft.reasoning.thread.thread import Thread
from weft.reasoning.thread.tokens import Tokens

_MODULUS: Final = 2**31 - 1


class Tree:
    """One thought: `name` is unique in a run. `exact`: the model places tokens where it is told.

    `flat`: paths were joined that should not see one another, but do.
    """

    def __init__(
        self,
        name: str,
        model: ModelClient,
        grammar: Grammar,
        options: ThinkOptions,
        question: Question,
        tokens: Tokens,
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
        self._calls: list[Call] = []
        self._threads = 0
        self._forks = 0
        self._depth = 0
        self._width = 0

    def thread(self, place: str, spec: ChildSpec, depth: int, limit: int) -> Thread:
        """A new thread of the tree."""
        self._threads += 1
        return Thread(place, spec, self.question, depth, limit, self.tokens.marks)

    def forked(self, depth: int, width: int) -> None:
        """Count a fork of `width` threads, which are `depth` deep."""
        self._forks += 1
        self._depth = max(self._depth, depth)
        self._width = max(self._width, width)

    def joined(self, join: Join) -> None:
        """Count what a join cost."""
        self.prefill_extra += join.again
        self.flat = self.flat or join.flat

    def call(
        self,
        context: Context,
        stops: Sequence[str],
        granted: int,
        seed: int,
        schema: JsonSchema | None = None,
    ) -> Call:
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
        call = Call(self.model, request, granted)
        self._calls.append(call)
        return call

    def seed(self, place: str, number: int) -> int:
        """The seed of call `number` of the thread at `place`: the same in every run."""
        text = f"{self.options.seed}:{place}:{number}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % _MODULUS

    def counts(self, root: Thread) -> Counts:
        """What the tree cost."""
        usage = sum((call.usage for call in self._calls), Usage())
        return Counts(
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
