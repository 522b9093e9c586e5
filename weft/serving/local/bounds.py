"""Upper bounds for the strings and arrays of a JSON Schema that has none.

Knows JSON Schema keywords; knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.values import JsonSchema

_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def bounded(schema: JsonSchema, *, max_chars: int | None, max_items: int | None) -> dict[str, Any]:
    """A copy in which every string and array has an upper bound. What validates still validates.

    A schema's own bound stays; a larger lower bound raises the new upper one. Schemas that fix
    their values (`enum`, `const`) and strings with a `format` or `pattern` stay as they are.
    """
    bounds = {"string": ("Length", max_chars), "array": ("Items", max_items)}
    return _bounded(schema, {k: (w, n) for k, (w, n) in bounds.items() if n is not None})


def _bounded(schema: Mapping[str, Any], bounds: Mapping[str, tuple[str, int]]) -> dict[str, Any]:
    result = {key: _inside(key, value, bounds) for key, value in schema.items()}
    if result.keys() & {"enum", "const", "format", "pattern", "$ref"}:
        return result
    kinds = schema.get("type")
    for kind, (word, limit) in bounds.items():
        if kind == kinds or (isinstance(kinds, list | tuple) and kind in kinds):
            result.setdefault(f"max{word}", max(limit, schema.get(f"min{word}", 0)))
    return result


def _inside(key: str, value: Any, bounds: Mapping[str, tuple[str, int]]) -> Any:
    if key in _ONE and isinstance(value, Mapping):
        return _bounded(value, bounds)
    if key in _MANY and isinstance(value, list | tuple):
        return [_bounded(one, bounds) if isinstance(one, Mapping) else one for one in value]
    if key in _NAMED and isinstance(value, Mapping):
        return {
            name: _bounded(one, bounds) if isinstance(one, Mapping) else one
            for name, one in value.items()
        }
    return value
