"""Names in templates: which ones a value uses, and one of them renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from weft.workflow.document.expressions import BadExpression, template
from weft.workflow.document.expressions.sandbox import SANDBOX

_NAMING: Final = frozenset(("after", "join", "fallback", "degrade"))
"""Keys of a node whose values are names of nodes."""
_FOREIGN: Final = frozenset((".", "|", "is"))
"""Words before the name of a field, a filter or a test."""


def names_in(value: Any) -> frozenset[str]:
    """The names that plain data of a document uses: in templates, and of nodes to wait for."""
    return frozenset(_names(value))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        with suppress(BadExpression):  # the check of the document reports it
            yield from template(value).names
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in _NAMING:
                yield from [item] if isinstance(item, str) else item
            else:
                yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def renamed(value: Any, old: str, new: str) -> Any:
    """`value` with the name `old` replaced in every template, and nowhere else."""
    if isinstance(value, str):
        return _renamed_text(value, old, new)
    if isinstance(value, Mapping):
        return {key: renamed(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, old, new) for item in value]
    return value


def _renamed_text(text: str, old: str, new: str) -> str:
    if old not in text or not any(mark in text for mark in ("{{", "{%")):
        return text
    tokens = [(kind, word) for _, kind, word in SANDBOX.lex(text)]
    code = [word for kind, word in tokens if kind != "whitespace"]
    words, number = [], 0
    for kind, word in tokens:
        is_value = kind == "name" and word == old and _is_value(code, number)
        words.append(new if is_value else word)
        number += kind != "whitespace"
    return "".join(words)


def _is_value(code: list[str], number: int) -> bool:
    """Whether that name stands for a value: it is no field, filter, test or keyword."""
    before = code[max(number - 2, 0) : number]
    if before[-1:] and before[-1] in _FOREIGN:
        return False
    return before != ["is", "not"] and code[number + 1 : number + 2] != ["="]
