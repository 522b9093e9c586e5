"""Parts of a document that one plain value may stand for: `think: sample`, `retry: 3`.

Knows no part.
"""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator, PlainSerializer

from weft.workflow.document.part import Part


def expands(key: str, shape: Any, kind: type = str) -> BeforeValidator:
    """A value of `kind` alone stands for a part that says `key` and nothing else.

    `shape` is the type of all that may be written.
    """

    def expand(value: object) -> object:
        alone = isinstance(value, kind) and not isinstance(value, bool)
        return {key: value} if alone else value

    return BeforeValidator(expand, json_schema_input_type=shape)


def shortens(key: str) -> PlainSerializer:
    """A part that says `key` and nothing else is written as that value alone."""

    def shorten(part: Part) -> object:
        fields = part.model_dump(exclude_unset=True)
        return fields[key] if list(fields) == [key] else fields

    return PlainSerializer(shorten)
