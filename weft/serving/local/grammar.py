"""JSON that fits a schema, enforced token by token with llguidance.

Knows which tokens may follow; knows nothing of the model that picks among them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.core.values import JsonSchema
from weft.serving.local.bounds import bounded
from weft.serving.local.options import LocalOptions

if TYPE_CHECKING:
    from llguidance import LLTokenizer

# fixed separators: a small model that may choose its white space can write it for ever
_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_KEPT = 64


class Grammar:
    """Where one answer stands in its grammar."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    @property
    def finished(self) -> bool:
        """Nothing can follow any more."""
        return bool(self._matcher.is_stopped())

    @property
    def complete(self) -> bool:
        """What has been written fits the schema as it stands."""
        return bool(self._matcher.is_accepting())

    def restrict(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that cannot follow to -inf, in place. logits: [vocabulary]

        Raises: `ModelRequestError` when the schema has become too complex to follow.
        """
        allowed = np.frombuffer(self._matcher.compute_logit_bias(), dtype=np.uint8)
        self._check()
        logits[allowed == 0] = -np.inf

    def accept(self, token: int) -> None:
        """Take the token that was drawn."""
        self._matcher.consume_token(token)
        self._check()

    def forced(self) -> list[int]:
        """Take and return the tokens that must follow now whatever the model says."""
        tokens: list[int] = self._matcher.compute_ff_tokens()
        if tokens:
            self._matcher.consume_tokens(tokens)
            self._check()
        return tokens

    def _check(self) -> None:
        if self._matcher.is_error():
            raise _refused(self._matcher.get_error())


class GrammarCompiler:
    """Compiles schemas for one vocabulary; the last few are kept."""

    def __init__(self, trie: LLTokenizer, options: LocalOptions) -> None:
        self._trie = trie
        self._max_chars = options.max_string_chars
        self._max_items = options.max_items
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def start(self, schema: JsonSchema) -> Grammar:
        """A fresh grammar of the schema.

        Raises: `ModelRequestError` for a schema that is wrong, that nothing fits, or that uses a
        keyword which cannot be enforced.
        """
        limited = bounded(schema, max_chars=self._max_chars, max_items=self._max_items)
        text = json.dumps(limited, default=_plain)
        matcher = self._compiled.get(text) or self._compile(text)
        self._compiled[text] = matcher
        self._compiled.move_to_end(text)
        if len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        return Grammar(matcher.deep_copy())

    def _compile(self, schema: str) -> LLMatcher:
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides=_STYLE)
        matcher = LLMatcher(self._trie, grammar, log_level=0)
        if matcher.is_error():
            raise _refused(matcher.get_error())
        return matcher


def _refused(reason: str) -> ModelRequestError:
    first = reason.strip().partition("\n")[0]
    return ModelRequestError(
        f"the schema cannot be enforced: {first}",
        hint="leave out what it names, and check that afterwards",
    )


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise ModelRequestError(f"a schema holds {type(value).__name__}, which is not JSON")
