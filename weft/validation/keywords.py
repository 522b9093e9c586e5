"""Where schemas stand inside a schema, by keyword. Knows no values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

SAME_VALUE: Final = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
)
"""Keywords whose schemas apply to the value itself, not to a part of it."""
SINGLE: Final = frozenset(
    (
        *("items", "additionalProperties", "contains", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
    )
)
LISTED: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
NAMED: Final = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
REFUSED: Final = frozenset(
    (
        *("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"),
        "$vocabulary",
    )
)
"""Keywords that change what references mean."""


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas directly inside `schema`, with their keywords; follows no reference."""
    for keyword, value in schema.items():
        if keyword in SINGLE:
            yield keyword, value
        elif keyword in LISTED and isinstance(value, list):
            yield from ((keyword, part) for part in value)
        elif keyword in NAMED and isinstance(value, Mapping):
            yield from ((keyword, part) for part in value.values())
