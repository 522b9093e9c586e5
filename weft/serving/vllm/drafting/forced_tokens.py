"""Tokens that an answer's grammar leaves no choice about, found with llguidance.

Grammars are read beside the engine's work, in a thread: until one is ready it forces nothing.
Whatever goes wrong, it forces nothing from then on.
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
_KEPT: Final = 64
_LONGEST: Final = 400_000


class ForcedTokens:
    """Implements `Grammar`: where one answer stands in a grammar that may not be read yet."""

    def __init__(self, reading: Future[LLMatcher]) -> None:
        self._reading: Future[LLMatcher] | None = reading
        self._matcher: LLMatcher | None = None
        self._waiting: list[int] = []

    def take(self, tokens: Sequence[int]) -> None:
        """The answer goes on with `tokens`."""
        self._waiting += tokens
        if self._ready() and self._matcher is not None:
            taken, self._waiting = self._waiting, []
            if not self._matcher.consume_tokens(taken):
                self._matcher = None

    def forced(self) -> Sequence[int]:
        """The tokens that must follow whatever the model says."""
        if not self._ready() or self._matcher is None or self._matcher.is_stopped():
            return ()
        return tuple(self._matcher.compute_ff_tokens())

    def _ready(self) -> bool:
        """Whether the grammar has been read; takes over what was read."""
        if self._reading is not None and self._reading.done():
            reading, self._reading = self._reading, None
            if not reading.cancelled() and reading.exception() is None:
                self._matcher = reading.result().deep_copy()
                waiting, self._waiting = self._waiting, []
                self.take(waiting)
        return self._reading is None


class ForcedTokensCompiler:
    """Reads constraints of one vocabulary; the last few are kept. `tokenizer` is asked once."""

    def __init__(
        self, tokenizer: Callable[[], LLTokenizer], *, whitespace_flexible: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._style = {"whitespace_flexible": whitespace_flexible}
        self._vocabulary: LLTokenizer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weft-grammars")
        self._readings: OrderedDict[Constraint, Future[LLMatcher]] = OrderedDict()

    def __call__(self, constraint: Constraint) -> ForcedTokens | None:
        """An answer under `constraint` begins; None for one that is too long to follow."""
        if len(constraint.text) > _LONGEST:
            return None
        if constraint not in self._readings:
            self._readings[constraint] = self._thread.submit(self._read, constraint)
        self._readings.move_to_end(constraint)
        if len(self._readings) > _KEPT:
            self._readings.popitem(last=False)
        return ForcedTokens(self._readings[constraint])

    def wait(self) -> None:
        """Until all grammars so far are read, or could not be."""
        for reading in self._readings.values():
            reading.exception()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)

    def _read(self, constraint: Constraint) -> LLMatcher:
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
