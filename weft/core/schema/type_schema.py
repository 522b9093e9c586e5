"""JSON Schemas of Python types, whose objects are closed when a model's server gets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.core.values import JsonSchema

_ONE: Final = frozenset({"items", "additionalProperties"})
_MANY: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NOT_ALONE: Final = frozenset(
    {"additionalProperties", "unevaluatedProperties", "patternProperties", "$ref"}
    | {"anyOf", "oneOf", "allOf", "if"}
)
"""Keywords beside `properties` that allow or refuse further properties themselves."""
_HINT: Final = "raise max_tokens, or give strings a maxLength and arrays a maxItems"
_OPEN_HINT: Final = (
    "; objects without `additionalProperties: false` let the model add keys of its own"
)


class TypeSchema(dict[str, Any]):
    """The JSON Schema of a Python type: in records and digests the schema as it is.

    A server gets it `closed`, since a model would else be invited to invent keys that the type
    drops. The value is checked by the type.
    """


def closed(schema: JsonSchema) -> JsonSchema:
    """`schema` as a server gets it: with `additionalProperties: false` in parts of Python types.

    Types that allow further keys keep them. Other schemas stay as they are.
    """
    try:
        return _sent(schema, isinstance(schema, TypeSchema))
    except RecursionError:  # nested deeper than any schema of a type
        return schema


def is_open(schema: JsonSchema) -> bool:
    """Whether objects with named properties may have others, which nothing describes."""
    try:
        return _sent(schema, True) != closed(schema)
    except RecursionError:
        return False


def truncation_hint(schema: JsonSchema | None) -> str:
    """What to do when an answer of `schema` reached its limit of tokens."""
    return f"{_HINT}{_OPEN_HINT}" if schema is not None and is_open(schema) else _HINT


def _sent(schema: JsonSchema, of_type: bool) -> JsonSchema:
    of_type = of_type or isinstance(schema, TypeSchema)
    result = {key: _inside(key, value, of_type) for key, value in schema.items()}
    if of_type and "properties" in result and not result.keys() & _NOT_ALONE:
        result["additionalProperties"] = False
    return result


def _part(part: Any, of_type: bool) -> Any:
    return _sent(part, of_type) if isinstance(part, Mapping) else part


def _inside(key: str, value: Any, of_type: bool) -> Any:
    if key in _ONE:
        return _part(value, of_type)
    if key in _MANY and isinstance(value, (list, tuple)):
        return [_part(part, of_type) for part in value]
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _part(part, of_type) for name, part in value.items()}
    return value
