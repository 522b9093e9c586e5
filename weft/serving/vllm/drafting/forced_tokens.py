"""Tokens that the grammar of an answer forces, found with llguidance.

Grammars are compiled in a thread, next to the engine's work. Until one is ready, and after any
failure, nothing is forced.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from weft.serving.vllm.drafting.requests import Constraint

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

LOG = logging.getLogger("vllm.weft")
_CAPACITY: Final = 64
_LONGEST: Final = 400_000


class ForcedTokens:
    """Implements `ForcedTokenSource`: the state of one answer in a grammar, once compiled."""

    def __init__(self, compilation: Future[LLMatcher]) -> None:
        self._compilation: Future[LLMatcher] | None = compilation
        self._matcher: LLMatcher | None = None
        self._waiting: list[int] = []

    def take(self, tokens: Sequence[int]) -> None:
        """Append `tokens` to the answer."""
        self._waiting += tokens
        if self._ready() and self._matcher is not None:
            taken, self._waiting = self._waiting, []
            if not self._matcher.consume_tokens(taken):
                self._matcher = None

    def forced(self) -> Sequence[int]:
        """The tokens that must come next."""
        if not self._ready() or self._matcher is None or self._matcher.is_stopped():
            return ()
        return tuple(self._matcher.compute_ff_tokens())

    def _ready(self) -> bool:
        """Whether the compilation has ended; adopts its result."""
        if self._compilation is not None and self._compilation.done():
            compilation, self._compilation = self._compilation, None
            if not compilation.cancelled() and compilation.exception() is None:
                self._matcher = compilation.result().deep_copy()
                waiting, self._waiting = self._waiting, []
                self.take(waiting)
        return self._compilation is None


class ForcedTokensCompiler:
    """Compiles constraints for one vocabulary, and caches the last few. `tokenizer` runs once."""

    def __init__(
        self, tokenizer: Callable[[], LLTokenizer], *, whitespace_flexible: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._style = {"whitespace_flexible": whitespace_flexible}
        self._vocabulary: LLTokenizer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weft-grammars")
        self._compilations: OrderedDict[Constraint, Future[LLMatcher]] = OrderedDict()

    def __call__(self, constraint: Constraint) -> ForcedTokens | None:
        """The forced tokens of a new answer under `constraint`; None for one that is too long."""
        if len(constraint.text) > _LONGEST:
            return None
        if constraint not in self._compilations:
            self._compilations[constraint] = self._thread.submit(self._compile, constraint)
        self._compilations.move_to_end(constraint)
        if len(self._compilations) > _CAPACITY:
            self._compilations.popitem(last=False)
        return ForcedTokens(self._compilations[constraint])

    def wait(self) -> None:
        """Wait until all compilations so far have ended."""
        for compilation in self._compilations.values():
            compilation.exception()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _compile(self, constraint: Constraint) -> LLMatcher:
        from llguidance import LLMatcher

        if self._vocabulary is None:
            self._vocabulary = self._tokenizer()
        if constraint.kind == "json":
            source = LLMatcher.grammar_from_json_schema(constraint.text, defaults=self._style)
        elif constraint.kind == "regex":
            source = LLMatcher.grammar_from_regex(constraint.text)
        else:
            source = LLMatcher.grammar_from_lark(constraint.text)
        matcher = LLMatcher(self._vocabulary, source, log_level=0)
        if matcher.is_error():
            LOG.info("weft drafts without a grammar that it cannot read")
            raise ValueError(matcher.get_error())
        return matcher
