"""Declarations of functions as models' vendors and benchmarks write them, in weft's own form.

Knows OpenAI's, Anthropic's, Gemini's, MCP's and the Berkeley leaderboard's spelling. Calls nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.foreign import identifier, shown, vetted
from weft.core.errors import BuildError
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused

_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("object", "dict", "map", "hashmap", "hashtable", "struct"), "object"),
    **dict.fromkeys(("array", "list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("string", "str", "char", "text"), "string"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("null", "none"), "null"),
}
_ANY: Final = frozenset(("any", "type_unspecified"))
_NAMES: Final = ("name", "api_name")
_DESCRIPTIONS: Final = ("description", "api_description")
_PARAMETERS: Final = ("parameters", "input_schema", "inputSchema", "query_parameters")
_SCHEMAS: Final = ("items", "additionalProperties", "not", "contains", "propertyNames")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")
_COUNTS: Final = (
    *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
)
_DESCRIPTION_CHARS: Final = 4_000
_MOST_NESTED: Final = 40


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function as a model may call it. `name` is an identifier: `math.hypot` is `math_hypot`."""

    name: str
    description: str
    parameters: JsonSchema


def declaration_of(declared: Mapping[str, Any], name: str | None = None) -> Declaration:
    """What `declared` says of a function.

    Raises: `BuildError` for what is no declaration, or holds a schema that cannot be used.
    """
    inner = declared.get("function")
    said = inner if isinstance(inner, Mapping) else declared
    written = name or _first(said, _NAMES, None)
    if not isinstance(written, str) or not written:
        raise BuildError(
            "a declaration of a tool has no name",
            hint='it is one function, as {"name": ..., "description": ..., "parameters": {...}}',
        )
    place = f"the declaration of {shown(written, 80)}"
    parameters = _first(said, _PARAMETERS, {})
    if not isinstance(parameters, Mapping):
        raise BuildError(f"{place}: its parameters are {type(parameters).__name__}, no object")
    whole = _Plain(place).parameters(parameters, said.get("required"))
    try:
        schema = vetted(whole)
    except SchemaRefused as error:
        raise BuildError(f"{place}: {error}") from error
    description = _first(said, _DESCRIPTIONS, "")
    text = shown(str(description or ""), _DESCRIPTION_CHARS, lines=True)
    return Declaration(identifier(written), text, schema)


def _first(said: Mapping[str, Any], names: tuple[str, ...], otherwise: Any) -> Any:
    return next((said[name] for name in names if name in said), otherwise)


class _Plain:
    """Schemas in the spelling of JSON Schema."""

    def __init__(self, place: str) -> None:
        self._place = place

    def parameters(self, parameters: Mapping[str, Any], required: Any) -> dict[str, Any]:
        """All parameters as one schema; some declarations hold only its properties."""
        if not isinstance(parameters.get("type", ""), str) or not (
            {"type", "properties", "$ref", "anyOf", "oneOf", "allOf"} & parameters.keys()
        ):
            parameters = {"type": "object", "properties": parameters}
        if required is not None and "required" not in parameters:
            parameters = {**parameters, "required": required}
        schema = self.schema(parameters, "")
        if schema.get("type", "object") != "object":
            raise BuildError(f"{self._place}: its parameters are {schema['type']}, no object")
        return {"properties": {}, **schema, "type": "object"}

    def schema(self, part: Mapping[str, Any], place: str, depth: int = 0) -> dict[str, Any]:
        if depth > _MOST_NESTED:
            raise BuildError(f"{self._place}: its schema is nested too deeply")
        made = {key: self._value(key, value, place, depth) for key, value in part.items()}
        required = made.get("required")
        if not isinstance(required, list):  # `true` on the parameter itself, as some have it
            made.pop("required", None)
        marked = [
            name
            for name, inner in _mapping(part.get("properties")).items()
            if isinstance(inner, Mapping) and inner.get("required") is True
        ]
        if marked:
            made["required"] = list(dict.fromkeys([*made.get("required", ()), *marked]))
        made = {key: value for key, value in made.items() if value is not _NOTHING}
        return _nullable(made) if part.get("nullable") is True else made

    def _value(self, key: str, value: Any, place: str, depth: int) -> Any:
        if key == "type":
            return self._type(value, place)
        if key in _SCHEMAS and isinstance(value, Mapping):
            return self.schema(value, f"{place}[]" if key == "items" else place, depth + 1)
        if key in _LISTS and isinstance(value, (list, tuple)):
            return [
                self.schema(one, place, depth + 1) if isinstance(one, Mapping) else one
                for one in value
            ]
        if key in _NAMED and isinstance(value, Mapping):
            return {
                str(name): self.schema(one, f"{place}.{name}".lstrip("."), depth + 1)
                if isinstance(one, Mapping)
                else one
                for name, one in value.items()
            }
        if key in _COUNTS and isinstance(value, str) and value.isdecimal():
            return int(value)  # Gemini writes 64-bit integers as texts
        return value

    def _type(self, stated: Any, place: str) -> Any:
        if isinstance(stated, (list, tuple)):
            types = [self._type(one, place) for one in stated]
            return _NOTHING if _NOTHING in types else types
        spelled = str(stated).strip().lower()
        if spelled in _ANY:
            return _NOTHING
        if spelled not in _TYPES:
            where = f"the parameter {place}" if place else "it"
            raise BuildError(
                f"{self._place}: {where} has the unknown type {shown(str(stated), 80)!r}",
                hint=f"there are: {', '.join(sorted({*_TYPES, *_ANY}))}",
            )
        return _TYPES[spelled]


_NOTHING: Final = object()
"""Stands for a keyword that says nothing."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema`, or null, as Gemini and OpenAPI 3.0 say it."""
    rest = {key: value for key, value in schema.items() if key != "nullable"}
    about: dict[str, Any] = {
        key: rest.pop(key) for key in ("description", "title", "default") if key in rest
    }
    return {**about, "anyOf": [rest, {"type": "null"}]}
