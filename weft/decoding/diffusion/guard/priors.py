"""Limits on literal text in an answer, which the model did not write.

A model that sees both sides of a gap fills it to fit: the author of the sides determines the
answer. Untrusted callers may name fields, not write sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.errors import ModelRequestError

_WORD: Final = re.compile(r"[^\W\d_]+")
_INSIDE: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_|-")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")
_TEXTS: Final = ("const", "enum", "pattern", "required")
_ANNOTATIONS: Final = ("title", "description", "examples", "default", "$comment")
"""Keywords whose text is never written."""
_LONG: Final = 16
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class PriorLimits:
    """For callers that are not trusted: words in one literal, and in all of them.

    `free` text, which is no field name or listed value of a schema, is refused unless allowed.

    Raises: `ValueError` for limits below zero.
    """

    words: int = 8
    total_words: int = 200
    free: bool = False

    def __post_init__(self) -> None:
        if min(self.words, self.total_words) < 0:
            raise ValueError(f"no limits of {self.words} and {self.total_words} words")

    def check(self, texts: Sequence[str], *, trusted: bool = False) -> None:
        """Check free text of a caller. Raises: `ModelRequestError`."""
        if trusted or not any(text.strip() for text in texts):
            return
        if not self.free:
            raise ModelRequestError(
                "only trusted callers may write parts of an answer",
                hint="ask for a schema, or have the server's own template hold the text",
            )
        self._count(texts)

    def check_schema(self, schema: Mapping[str, Any], *, trusted: bool = False) -> None:
        """Check names and listed values of a schema. Raises: `ModelRequestError`."""
        if not trusted:
            self._count(list(dict.fromkeys(literals(schema))))

    def _count(self, texts: Sequence[str]) -> None:
        counts = [words_in(text) for text in texts]
        if max(counts, default=0) > self.words:
            raise ModelRequestError(
                f"a literal of {max(counts)} words, and {self.words} are allowed",
                hint="shorten the names and listed values of the schema",
            )
        if sum(counts) > self.total_words:
            raise ModelRequestError(
                f"literals of {sum(counts)} words, and {self.total_words} are allowed",
                hint="ask for less in one answer",
            )


def words_in(text: str) -> int:
    """Number of words; those in compound names count, and every 16 characters of a word."""
    words = [word for part in _INSIDE.split(text) for word in _WORD.findall(part)]
    return sum(-(-len(word) // _LONG) for word in words)


def literals(schema: object, depth: int = 0) -> Iterator[str]:
    """All text of a schema that may appear in an answer verbatim: names, `const`, `enum`, and
    patterns, which may spell sentences.

    Raises: `ModelRequestError` for a schema that nests too deep.
    """
    if depth > _DEEPEST:
        raise ModelRequestError(f"the schema nests deeper than {_DEEPEST}")
    if isinstance(schema, Mapping):
        for key, inner in schema.items():
            yield from _under(key, inner, depth + 1)
    elif isinstance(schema, list | tuple):
        for one in schema:
            yield from literals(one, depth + 1)


def _under(key: object, inner: object, depth: int) -> Iterator[str]:
    """The literals of one keyword."""
    if key in _NAMED and isinstance(inner, Mapping):
        yield from map(str, inner)
        for one in inner.values():
            yield from literals(one, depth)
    elif key in _TEXTS:
        yield from _texts(inner, depth)
    elif key not in _ANNOTATIONS:
        yield from literals(inner, depth)


def _texts(value: object, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise ModelRequestError(f"the schema nests deeper than {_DEEPEST}")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, depth + 1)
