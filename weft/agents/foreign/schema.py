"""JSON Schemas that somebody else wrote, as copies that are safe to keep, show and check with.

Knows schemas only; values are checked against them by `weft.agents.foreign.fit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from weft.agents.foreign.text import shown
from weft.agents.foreign.unfolding import Endless, Unfolding, target

MAX_PARTS: Final = 2_000
_MAX_DEPTH: Final = 40
_TEXT_PER_PART: Final = 33
_MAX_DESCRIPTION: Final = 1_000

_ONE: Final = frozenset(
    (
        *("items", "additionalProperties", "contains", "propertyNames"),
        *("unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else"),
    )
)
_MANY: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
_PLAIN: Final = frozenset(
    (
        *("type", "enum", "const", "default", "required", "format", "$ref", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("minContains", "maxContains", "uniqueItems", "x-mcp-header"),
    )
)
_TEXTS: Final = frozenset(("title", "description"))
_SHARP: Final = frozenset(("not", "if", "then", "else", "maxContains"))
"""Keywords that refuse more when what they hold refuses less."""


class SchemaRefused(ValueError):
    """The schema cannot be used; the message says why."""


def vetted(schema: object, *, most_parts: int = MAX_PARTS) -> dict[str, Any]:
    """A copy of `schema` in the keywords of draft 2020-12 that weft knows, of bounded size.

    Regular expressions (`pattern`, `patternProperties`) are left out, and with them what would
    become stricter for want of them: one can be written that takes for ever. References lead into
    the schema itself; texts have no control characters.

    Raises: `SchemaRefused`.
    """
    if not isinstance(schema, Mapping):
        raise SchemaRefused(f"a schema must be an object, not {type(schema).__name__}")
    made = _Copy(loose=_measured(schema, most_parts)).of(schema)
    assert isinstance(made, dict)
    try:
        Draft202012Validator.check_schema(made)
    except SchemaError as error:
        raise SchemaRefused(f"not a JSON Schema: {shown(error.message, 200)}") from error
    for reference in _references(made, most_parts):
        if target(reference, made) is None:
            raise SchemaRefused(f"$ref {shown(reference, 100)!r} leads nowhere in the schema")
    _check_unfolding(made, most_parts)
    return made


def _check_unfolding(schema: Mapping[str, Any], most_parts: int) -> None:
    unfolding = Unfolding(schema)
    try:
        largest = max(unfolding.size(part) for part in _walk(schema, most_parts))
    except (Endless, RecursionError) as error:
        raise SchemaRefused(str(error)) from error
    if largest > most_parts:
        raise SchemaRefused(f"a part of a schema that unfolds to more than {most_parts:,} parts")


def parts(value: object) -> int:
    """How many values are in `value`, itself included. Raises: `SchemaRefused` above the bound."""
    return sum(1 for _ in _walk(value, MAX_PARTS))


def _measured(schema: object, most_parts: int) -> bool:
    """True when regular expressions are in it. Raises: `SchemaRefused` when it is too large."""
    loose = False
    text, most = 0, most_parts * _TEXT_PER_PART
    for value in _walk(schema, most_parts):
        if isinstance(value, Mapping):
            text += sum(len(str(key)) for key in value)
            loose |= isinstance(value.get("pattern"), str) or "patternProperties" in value
        elif isinstance(value, str):
            text += len(value)
        if text > most:
            raise SchemaRefused(f"a schema of more than {most:,} characters")
    return loose


def _walk(root: object, most: int) -> Iterator[object]:
    todo: list[tuple[object, int]] = [(root, 1)]
    count = 0
    while todo:
        value, depth = todo.pop()
        count += 1
        if count > most:
            raise SchemaRefused(f"a schema of more than {most:,} parts")
        if depth > _MAX_DEPTH:
            raise SchemaRefused(f"a schema nested deeper than {_MAX_DEPTH} levels")
        yield value
        if isinstance(value, Mapping):
            todo.extend((inner, depth + 1) for inner in value.values())
        elif isinstance(value, (list, tuple)):
            todo.extend((inner, depth + 1) for inner in value)


class _Copy:
    """Copies schemas. `loose`: some of it was left out, so what would get stricter is too."""

    def __init__(self, *, loose: bool) -> None:
        self._loose = loose

    def of(self, schema: object) -> dict[str, Any] | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise SchemaRefused(f"a part of a schema is {type(schema).__name__}")
        made: dict[str, Any] = {}
        open_keys = "patternProperties" in schema
        for key, value in schema.items():
            if self._loose and key in _SHARP:
                continue
            if open_keys and key in ("additionalProperties", "unevaluatedProperties"):
                continue
            self._take(made, key, value)
        return made

    def _take(self, made: dict[str, Any], key: object, value: object) -> None:
        if key in _TEXTS:
            if isinstance(value, str):
                made[str(key)] = shown(value, _MAX_DESCRIPTION, lines=True)
        elif key in _PLAIN:
            made[str(key)] = value
        elif key in _ONE:
            made[str(key)] = self.of(value)
        elif key in _NAMED and isinstance(value, Mapping):
            made[str(key)] = {str(name): self.of(part) for name, part in value.items()}
        elif key in _MANY and isinstance(value, list):
            group = [self.of(part) for part in value]
            if key == "oneOf" and self._loose:
                made["allOf"] = [*made.get("allOf", ()), {"anyOf": group}]
            elif key == "allOf":
                made["allOf"] = [*made.get("allOf", ()), *group]
            else:
                made[str(key)] = group
        elif key in _NAMED or key in _MANY:
            raise SchemaRefused(f"{key} of a schema is {type(value).__name__}")


def _references(schema: object, most_parts: int) -> Iterator[str]:
    """All references; a property called `$ref` holds a schema, not a text."""
    for part in _walk(schema, most_parts):
        if isinstance(part, Mapping) and isinstance(part.get("$ref"), str):
            yield part["$ref"]
