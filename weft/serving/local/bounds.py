"""Upper bounds for the strings and arrays of a JSON Schema that has none.

Knows JSON Schema keywords; knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.values import JsonSchema

_ONE = ("items", "additionalProperties")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions")
_LEAST_FOR_A_PATTERN = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most so many characters to a string and items to an array; None puts no bound."""

    max_string_chars: int | None
    max_items: int | None

    def put_on(self, schema: JsonSchema) -> dict[str, Any]:
        """A bounded copy: what fits it fits the schema.

        A schema's own upper bound stays, its lower bound raises a new upper one. What `enum` or
        `const` fix stays as it is; a string with a `pattern` or `format` gets at least 200
        characters, so that the bound does not rule out what it describes.
        """
        result = {key: self._inside(key, value) for key, value in schema.items()}
        if result.keys() & {"enum", "const"}:
            return result
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or ()
        if "string" in kinds and self.max_string_chars is not None:
            described = result.keys() & {"pattern", "format"}
            least = max(_LEAST_FOR_A_PATTERN if described else 0, schema.get("minLength", 0))
            result.setdefault("maxLength", max(self.max_string_chars, least))
        if "array" in kinds and self.max_items is not None:
            result.setdefault("maxItems", max(self.max_items, schema.get("minItems", 0)))
        return result

    def _inside(self, key: str, value: Any) -> Any:
        if key in _ONE:
            return self._bounded(value)
        if key in _MANY and isinstance(value, list | tuple):
            return [self._bounded(one) for one in value]
        if key in _NAMED and isinstance(value, Mapping):
            return {name: self._bounded(one) for name, one in value.items()}
        return value

    def _bounded(self, value: Any) -> Any:
        return self.put_on(value) if isinstance(value, Mapping) else value
