"""Sanitizes JSON Schemas from untrusted sources: copies that are safe to keep, show and use.

`weft.validation` checks bounds, patterns and references.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft.agents.untrusted.names import printable
from weft.core.schema import mismatch
from weft.core.schema.keywords import Part, listed
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused, compile_schema
from weft.validation.bounds import parts_of
from weft.validation.schema_cost import LISTED, NAMED, SINGLE, map_subschemas

_MAX_DESCRIPTION: Final = 1_000

_PLAIN: Final = frozenset(
    (
        *("type", "enum", "const", "default", "required", "format", "$ref", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("minContains", "maxContains", "uniqueItems", "pattern", "x-mcp-header"),
    )
)
_TEXTS: Final = frozenset(("title", "description"))


def vet_schema(schema: object) -> dict[str, Any]:
    """A copy of `schema` with the supported keywords of draft 2020-12, of bounded size.

    Texts have no control characters. Raises: `SchemaRefused`.
    """
    if not isinstance(schema, Mapping):
        raise SchemaRefused(f"a schema must be an object, not {type(schema).__name__}")
    count_values(schema)
    made = _copy(schema)
    assert isinstance(made, dict)
    compile_schema(made)
    return made


def count_values(value: object) -> int:
    """The number of values in `value`, including itself. Raises: `SchemaRefused` above bounds."""
    return sum(1 for _ in parts_of(value))


def _copy(schema: object) -> dict[str, Any] | bool:
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping):
        raise SchemaRefused(f"a part of a schema is {type(schema).__name__}")
    made: dict[str, Any] = {}
    for key, value in schema.items():
        _take(made, key, value)
    return made


def _take(made: dict[str, Any], key: object, value: object) -> None:
    if key in _TEXTS:
        if isinstance(value, str):
            made[str(key)] = printable(value, _MAX_DESCRIPTION, lines=True)
    elif key in _PLAIN:
        made[str(key)] = value
    elif (key in NAMED and not isinstance(value, Mapping)) or (
        key in LISTED and not isinstance(value, list)
    ):
        raise SchemaRefused(f"{key} of a schema is {type(value).__name__}")
    elif key in SINGLE or key in NAMED or key in LISTED:
        made[str(key)] = map_subschemas(key, value, _copy)


_DEEPEST = 16


class ContradictorySchema(UserWarning):
    """No value fits a parameter of a tool, so a model cannot provide it."""


def warn_of_contradictions(tool: str, parameters: JsonSchema) -> None:
    """Warn of each parameter of `tool` that no value fits."""
    for found in contradictions(parameters):
        place = printable(found, 100)
        warnings.warn(
            f"tool {tool}: no value fits {place}: its type and its values exclude each other",
            ContradictorySchema,
            stacklevel=3,
        )


def contradictions(schema: Part, place: str = "", depth: int = 0) -> Iterator[str]:
    """The places in `schema` whose listed values contradict their type."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    values = listed(schema)
    if values is not None and all(mismatch({"const": one}, schema) for one in values):
        yield place or "the whole"
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        yield from contradictions(part, f"{place}.{name}" if place else str(name), depth + 1)
    if "items" in schema:
        yield from contradictions(schema["items"], f"{place}[]", depth + 1)
