"""JSON that fits a schema, or text of a grammar, enforced token by token with llguidance."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from weft.core.errors import ModelRequestError
from weft.core.schema.comparison import endless
from weft.core.values import JsonSchema
from weft.serving.local.options import LocalOptions
from weft.serving.local.vocabulary import Vocabulary

_ONE = ("items", "additionalProperties")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions")
_MIN_PATTERN_CHARS = 200


@dataclass(frozen=True, slots=True)
class SchemaBounds:
    """The most characters of a string and items of an array; None: no bound."""

    max_string_chars: int | None
    max_items: int | None

    def put_on(self, schema: JsonSchema) -> dict[str, Any]:
        """A bounded copy: what fits it fits the schema.

        A schema's own upper bound stays; its lower bound raises an added upper one. Values of
        `enum` or `const` stay unchanged. A string with a `pattern` or `format` gets at least 200
        characters, so that the bound does not rule it out.
        """
        result = {key: self._inside(key, value) for key, value in schema.items()}
        if result.keys() & {"enum", "const"}:
            return result
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or ()
        if "string" in kinds and self.max_string_chars is not None:
            described = result.keys() & {"pattern", "format"}
            least = max(_MIN_PATTERN_CHARS if described else 0, schema.get("minLength", 0))
            result.setdefault("maxLength", max(self.max_string_chars, least))
        if "array" in kinds and self.max_items is not None:
            result.setdefault("maxItems", max(self.max_items, schema.get("minItems", 0)))
        return result

    def _inside(self, key: str, value: Any) -> Any:
        if key in _ONE:
            return self._bounded(value)
        if key in _MANY and isinstance(value, list | tuple):
            return [self._bounded(one) for one in value]
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._bounded(one) for name, one in value.items()}
        return value

    def _bounded(self, value: Any) -> Any:
        return self.put_on(value) if isinstance(value, Mapping) else value


_BEGIN = frozenset(b"-0123456789")
EXPONENT = frozenset(b"eE")
NUMBER = _BEGIN | EXPONENT | frozenset(b"+.")


class NumberScanner:
    """`characters` is the length of the number at the end of JSON text; 0 outside a number."""

    def __init__(self) -> None:
        self.characters = 0
        self._in_string = False
        self._escaped = False

    def read(self, text: bytes) -> None:
        """Read the next piece of JSON; pieces may be cut anywhere."""
        for byte in text:
            if self._in_string:
                self._inside_string(byte)
            elif byte in (NUMBER if self.characters else _BEGIN):
                self.characters += 1
            else:
                self.characters = 0
                self._in_string = byte == ord('"')

    def _inside_string(self, byte: int) -> None:
        self._in_string = byte != ord('"') or self._escaped
        self._escaped = byte == ord("\\") and not self._escaped


# Fixed separators: a small model that may choose its white space can write it for ever.
_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_CACHE_SIZE = 64
_NUMBER_CHARS = 20
_REASON_CHARS = 300


class AnswerGrammar:
    """The state of one answer in its grammar.

    `is_json`: where a schema allows any number, it is written without exponent and ends at 20
    characters, since a small model may write one for ever.
    """

    def __init__(self, matcher: LLMatcher, vocabulary: Vocabulary, *, is_json: bool) -> None:
        self.is_json = is_json
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._number = NumberScanner()

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""
        return bool(self._matcher.is_stopped())

    @property
    def complete(self) -> bool:
        """Whether the answer so far is valid."""
        return bool(self._matcher.is_accepting())

    def restrict(self, logits: NDArray[np.float32]) -> None:
        """Set the logits of tokens that cannot follow to -inf, in place. logits: [vocabulary]

        Raises: `ModelRequestError` when the grammar has become too complex to follow.
        """
        allowed = np.frombuffer(self._matcher.compute_logit_bias(), dtype=np.uint8) != 0
        self._check()
        if self._number.characters:
            ends = self._number.characters >= _NUMBER_CHARS
            avoided = self._vocabulary.beginning_with(NUMBER if ends else EXPONENT)
            rest = allowed & ~avoided
            allowed = rest if rest.any() else allowed
        logits[~allowed] = -np.inf

    def following(self, tokens: Sequence[int]) -> int:
        """The number of leading `tokens` that could follow now. Takes none."""
        count: int = self._matcher.validate_tokens(list(tokens))
        return count

    def accept(self, token: int) -> None:
        """Take the sampled token."""
        self._matcher.consume_token(token)
        self._check()
        if self.is_json:
            self._number.read(self._vocabulary.bytes_of(token))

    def forced(self) -> list[int]:
        """Take and return the tokens that the grammar forces now."""
        tokens: list[int] = self._matcher.compute_ff_tokens()
        for token in tokens:
            self.accept(token)
        return tokens

    def _check(self) -> None:
        if self._matcher.is_error():
            raise _refused(self._matcher.get_error())


class GrammarCompiler:
    """Compiles schemas and grammars for one vocabulary; caches the latest."""

    def __init__(self, vocabulary: Vocabulary, options: LocalOptions) -> None:
        self._vocabulary = vocabulary
        self._bounds = SchemaBounds(options.max_string_chars, options.max_items)
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def start(self, schema: JsonSchema) -> AnswerGrammar:
        """A new grammar of the schema.

        Raises: `ModelRequestError` for a schema that is invalid, that nothing fits, or that uses a
        keyword which cannot be enforced.
        """
        try:
            plain = json.dumps(schema, default=_plain, allow_nan=False)
            bounded = json.dumps(self._bounds.put_on(json.loads(plain)))
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(str(error)) from error
        if endless(schema):
            raise ModelRequestError(
                "no answer that ends fits the schema: a part of it must hold itself",
                hint="let a property on that way be optional or null, or an array be empty",
            )
        # Where nothing fits the bounds, they are dropped.
        sources = [
            LLMatcher.grammar_from_json_schema(schema, overrides=_STYLE)
            for schema in (bounded, plain)
        ]
        return AnswerGrammar(self._matcher(sources), self._vocabulary, is_json=True)

    def read(self, lark: str) -> AnswerGrammar:
        """A new grammar from its text in llguidance's Lark dialect.

        Raises: `ModelRequestError` for an invalid text.
        """
        matcher = self._matcher([LLMatcher.grammar_from_lark(lark)])
        return AnswerGrammar(matcher, self._vocabulary, is_json=False)

    def _matcher(self, sources: Sequence[str]) -> LLMatcher:
        """A new matcher of the first of `sources` that can be enforced."""
        matcher = self._compiled.get(sources[0]) or self._compile(sources)
        self._compiled[sources[0]] = matcher
        self._compiled.move_to_end(sources[0])
        if len(self._compiled) > _CACHE_SIZE:
            self._compiled.popitem(last=False)
        return matcher.deep_copy()

    def _compile(self, sources: Sequence[str]) -> LLMatcher:
        for source in sources:
            matcher = LLMatcher(self._vocabulary.trie, source, log_level=0)
            if not matcher.is_error():
                _check_writable(matcher)
                return matcher
        raise _refused(matcher.get_error())


def _check_writable(matcher: LLMatcher) -> None:
    """Raises: `ModelRequestError` where no token of the model can begin an answer."""
    trial = matcher.deep_copy()
    begins = np.frombuffer(trial.compute_logit_bias(), dtype=np.uint8).any()
    if trial.is_error() or not begins:
        raise ModelRequestError(
            "no tokens of this model write an answer of that schema or grammar",
            hint="its tokenizer knows other words: take a model of general text",
        )


def _refused(reason: str) -> ModelRequestError:
    return ModelRequestError(
        f"the schema or grammar cannot be enforced: {_in_short(reason)}",
        hint="leave out what it names, and check that afterwards",
    )


def _in_short(reason: str) -> str:
    """llguidance's error without the dump of its state and grammar, and without its advice on
    options that the caller does not have.
    """
    text = reason.partition("<state>")[0].partition("<backtrace>")[0].partition(" Enable '")[0]
    return " ".join(text.split())[:_REASON_CHARS].rstrip(".")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}, which is not JSON")
