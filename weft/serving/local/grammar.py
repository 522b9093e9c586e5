"""JSON that fits a schema, enforced token by token with llguidance.

Knows which tokens may follow; knows nothing of the model that picks among them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.core.values import JsonSchema
from weft.serving.local.bounds import Bounds
from weft.serving.local.number_watch import EXPONENT, NUMBER, NumberWatch
from weft.serving.local.options import LocalOptions
from weft.serving.local.vocabulary import Vocabulary

# fixed separators: a small model that may choose its white space can write it for ever
_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_KEPT = 64
_NUMBER_CHARS = 20
_REASON_CHARS = 300


class Grammar:
    """Where one answer stands in its grammar.

    Where the grammar leaves a choice, numbers are written without exponent and end at 20
    characters: it would let them grow without end, and a small model does.
    """

    def __init__(self, matcher: LLMatcher, vocabulary: Vocabulary) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._watch = NumberWatch()

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
        allowed = np.frombuffer(self._matcher.compute_logit_bias(), dtype=np.uint8) != 0
        self._check()
        if self._watch.characters:
            ends = self._watch.characters >= _NUMBER_CHARS
            avoided = self._vocabulary.beginning_with(NUMBER if ends else EXPONENT)
            rest = allowed & ~avoided
            allowed = rest if rest.any() else allowed
        logits[~allowed] = -np.inf

    def accept(self, token: int) -> None:
        """Take the token that was drawn."""
        self._matcher.consume_token(token)
        self._check()
        self._watch.read(self._vocabulary.bytes_of(token))

    def forced(self) -> list[int]:
        """Take and return the tokens that must follow now whatever the model says."""
        tokens: list[int] = self._matcher.compute_ff_tokens()
        for token in tokens:
            self.accept(token)
        return tokens

    def _check(self) -> None:
        if self._matcher.is_error():
            raise _refused(self._matcher.get_error())


class GrammarCompiler:
    """Compiles schemas for one vocabulary; the last few are kept."""

    def __init__(self, vocabulary: Vocabulary, options: LocalOptions) -> None:
        self._vocabulary = vocabulary
        self._bounds = Bounds(options.max_string_chars, options.max_items)
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def start(self, schema: JsonSchema) -> Grammar:
        """A fresh grammar of the schema.

        Raises: `ModelRequestError` for a schema that is wrong, that nothing fits, or that uses a
        keyword which cannot be enforced.
        """
        try:
            plain = json.dumps(schema, default=_plain, allow_nan=False)
            bounded = json.dumps(self._bounds.put_on(json.loads(plain)))
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(str(error)) from error
        matcher = self._compiled.get(bounded) or self._compile(bounded, plain)
        self._compiled[bounded] = matcher
        self._compiled.move_to_end(bounded)
        if len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        return Grammar(matcher.deep_copy(), self._vocabulary)

    def _compile(self, bounded: str, plain: str) -> LLMatcher:
        """The bounded schema's matcher, or the plain one's where nothing fits the bounds."""
        for schema in (bounded, plain):
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=_STYLE)
            matcher = LLMatcher(self._vocabulary.trie, grammar, log_level=0)
            if not matcher.is_error():
                return matcher
        raise _refused(matcher.get_error())


def _refused(reason: str) -> ModelRequestError:
    return ModelRequestError(
        f"the schema cannot be enforced: {' '.join(reason.split())[:_REASON_CHARS]}",
        hint="leave out what it names, and check that afterwards",
    )


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}, which is not JSON")
