"""Upper bounds for the arrays of a JSON Schema that has none.

Knows JSON Schema keywords; knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.values import JsonSchema

_ONE = ("items", "additionalProperties")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions")


def bounded(schema: JsonSchema, max_items: int) -> dict[str, Any]:
    """A copy in which every array has at most `max_items` items, unless it says otherwise.

    What fits the copy fits the schema. An array's own upper bound stays, and its lower bound raises
    a new upper one; arrays that are fixed by `enum` or `const` stay as they are.
    """
    result = {key: _inside(key, value, max_items) for key, value in schema.items()}
    kinds = schema.get("type")
    is_array = kinds == "array" or (isinstance(kinds, list | tuple) and "array" in kinds)
    if is_array and not result.keys() & {"enum", "const"}:
        result.setdefault("maxItems", max(max_items, schema.get("minItems", 0)))
    return result


def _inside(key: str, value: Any, max_items: int) -> Any:
    if key in _ONE:
        return _bounded(value, max_items)
    if key in _MANY and isinstance(value, list | tuple):
        return [_bounded(one, max_items) for one in value]
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _bounded(one, max_items) for name, one in value.items()}
    return value


def _bounded(value: Any, max_items: int) -> Any:
    return bounded(value, max_items) if isinstance(value, Mapping) else value
