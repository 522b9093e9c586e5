"""OpenAI's rules for schemas that are sent with `strict: true`.

The hosted API refuses a request whose strict schema breaks one of them, so such a schema is sent
without `strict`, as a description; weft checks the answer in any case. A keyword that is not known
to be supported counts as unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft.core.values import JsonSchema

MOST_PROPERTIES: Final = 5_000
MOST_LEVELS: Final = 10
MOST_CHARACTERS: Final = 120_000
"""Of the names of properties and definitions and of enum and const texts, together."""
MOST_CHOICES: Final = 1_000
LONG_ENUM: Final = 250
MOST_CHARACTERS_OF_LONG_ENUM: Final = 15_000

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_KEYWORDS: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "$ref", "$defs", "definitions", "title", "description", "pattern", "format"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems"),
    }
)
_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_DEFINITIONS: Final = ("$defs", "definitions")


def is_strict(schema: JsonSchema) -> bool:
    """Whether OpenAI accepts `schema` with `strict: true`.

    The root is an object and no `anyOf`; every object lists all of its properties as required and
    allows no others; every schema has a type, an `anyOf`, or only a `$ref` to a definition of this
    document; all keywords are supported ones, and the counts are within the limits.
    """
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    return _StrictCheck(schema).passes()


class _StrictCheck:
    """One schema's check: a walk without recursion, as schemas may come from servers."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._properties = self._choices = self._characters = 0

    def passes(self) -> bool:
        waiting: list[tuple[Any, int]] = [(self._root, 1)]
        while waiting:
            schema, level = waiting.pop()
            if level > MOST_LEVELS or not isinstance(schema, Mapping) or not self._fits(schema):
                return False
            waiting += [(part, level + deeper) for part, deeper in _parts(schema)]
        return (
            self._properties <= MOST_PROPERTIES
            and self._choices <= MOST_CHOICES
            and self._characters <= MOST_CHARACTERS
        )

    def _fits(self, schema: Mapping[str, Any]) -> bool:
        """Whether this schema, without those inside it, follows the rules; counts it."""
        if "$ref" in schema:
            return len(schema) == 1 and self._is_known(schema["$ref"])
        if not _KEYWORDS.issuperset(schema):
            return False
        if "type" not in schema and "anyOf" not in schema:
            return False
        return _has_shape(schema) and self._counted(schema)

    def _is_known(self, ref: object) -> bool:
        if ref == "#":
            return True
        if not isinstance(ref, str):
            return False
        start, _, rest = ref.partition("/")
        place, _, name = rest.partition("/")
        definitions = self._root.get(place) if start == "#" and place in _DEFINITIONS else None
        return isinstance(definitions, Mapping) and name in definitions

    def _counted(self, schema: Mapping[str, Any]) -> bool:
        names = [*schema.get("properties", ())]
        self._properties += len(names)
        names += [name for place in _DEFINITIONS for name in schema.get(place, ())]
        choices = schema.get("enum", [])
        self._choices += len(choices)
        texts = [choice for choice in choices if isinstance(choice, str)]
        of_enum = sum(map(len, texts))
        const = schema.get("const")
        self._characters += of_enum + sum(map(len, names))
        self._characters += len(const) if isinstance(const, str) else 0
        return len(choices) <= LONG_ENUM or of_enum <= MOST_CHARACTERS_OF_LONG_ENUM


def _has_shape(schema: Mapping[str, Any]) -> bool:
    """Whether the keywords' values are of the right kind, and objects closed and required."""
    given = schema.get("type", [])
    kinds = given if isinstance(given, list) else [given]
    if not all(isinstance(kind, str) and kind in _TYPES for kind in kinds):
        return False
    if "type" in schema and not kinds:
        return False
    if "object" in kinds or "properties" in schema:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            return False
        closed = schema.get("additionalProperties") is False
        if not closed or sorted(map(str, required)) != sorted(properties):
            return False
    if "array" in kinds and "items" not in schema:
        return False
    return (
        isinstance(schema.get("enum", []), list)
        and isinstance(schema.get("anyOf", []), list)
        and schema.get("anyOf") != []
        and all(isinstance(schema.get(place, {}), Mapping) for place in _DEFINITIONS)
        and schema.get("format", "date") in _FORMATS
    )


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """The schemas inside of `schema`, each with the levels that it is deeper."""
    for part in schema.get("properties", {}).values():
        yield part, 1
    if "items" in schema:
        yield schema["items"], 1
    for part in schema.get("anyOf", ()):
        yield part, 0
    for place in _DEFINITIONS:
        for part in schema.get(place, {}).values():
            yield part, 0
