"""Schemas of an OpenAPI document as JSON Schemas that stand alone.

Knows how OpenAPI 3.0 differs from JSON Schema; what is safe is decided by `weft.agents.foreign`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from weft.agents.foreign import identifier
from weft.agents.openapi.document import ApiDocument

Direction = Literal["request", "response"]
_MAPS: Final = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_PARTS: Final = frozenset(
    (
        *("items", "additionalProperties", "contains", "propertyNames"),
        *("not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"),
    )
)
_LATER: Final = frozenset(("$defs", "definitions"))


class SchemaWriter:
    """Rewrites schemas for one direction, and collects those that they refer to.

    What a server alone sets (`readOnly`) is no part of a request, what it never shows (`writeOnly`)
    none of a response.
    """

    def __init__(self, document: ApiDocument, direction: Direction) -> None:
        self._document = document
        self._hidden = "readOnly" if direction == "request" else "writeOnly"
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []

    def written(self, schema: Any) -> Any:
        """`schema` with its references as `#/$defs/...`. Raises: `BuildError`."""
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = {"$ref": f"#/$defs/{self._name(reference)}"}
            if self._document.minor == 0 or len(schema) == 1:  # 3.0 ignores what stands beside it
                return target
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return {"allOf": [target, self.written(beside)]}
        made = {key: self._value(key, value) for key, value in schema.items() if key not in _LATER}
        self._leave_out_hidden(schema, made)
        return _modern(made)

    def definitions(self) -> dict[str, Any]:
        """What the schemas written so far refer to, for their `$defs`. Raises: `BuildError`."""
        made: dict[str, Any] = {}
        while self._waiting:
            reference = self._waiting.pop()
            made[self._names[reference]] = self.written(self._document.at(reference))
        return made

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            name = identifier(reference.rpartition("/")[2])
            taken = set(self._names.values())
            numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
            self._names[reference] = (
                name if name not in taken else next(n for n in numbered if n not in taken)
            )
            self._waiting.append(reference)
        return self._names[reference]

    def _value(self, key: str, value: Any) -> Any:
        if key in _MAPS and isinstance(value, Mapping):
            return {name: self.written(part) for name, part in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self.written(part) for part in value]
        return self.written(value) if key in _PARTS else value

    def _leave_out_hidden(self, schema: Mapping[str, Any], made: dict[str, Any]) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return
        hidden = {name for name, part in properties.items() if self._is_hidden(part)}
        made["properties"] = {
            name: part for name, part in made["properties"].items() if name not in hidden
        }
        if isinstance(made.get("required"), list):
            made["required"] = [name for name in made["required"] if name not in hidden]

    def _is_hidden(self, part: Any) -> bool:
        if not isinstance(part, Mapping):
            return False
        if part.get(self._hidden) is True:
            return True
        if "$ref" not in part:
            return False
        return self._document.resolved(part, "a property").get(self._hidden) is True


def _modern(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of OpenAPI 3.0, which is that of an old draft, in the words of draft 2020-12.

    Many documents that say 3.1 are still written so.
    """
    required = schema.get("required")
    if isinstance(required, list) and all(isinstance(name, str) for name in required):
        schema["required"] = [*dict.fromkeys(required)]
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(strict), bool) and schema.pop(strict) and bound in schema:
            schema[strict] = schema.pop(bound)
    if schema.pop("nullable", False) is not True:
        return schema
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
