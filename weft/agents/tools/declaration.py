"""Tools from existing schemas: `tool_from_schema`, and vendors' declarations.

Supports the forms of OpenAI, Anthropic, Gemini, MCP and the Berkeley leaderboard. The schema, not
the function's annotations, defines the arguments.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from weft.agents.tools.approval import ApprovalRule
from weft.agents.tools.function import Tool
from weft.agents.tools.problem import parameter_hint
from weft.agents.tools.schema import FunctionResult
from weft.agents.tools.signature import Signature
from weft.agents.untrusted import identifier, printable, vet_schema
from weft.core.errors import BuildError, ToolArgumentError
from weft.core.suggestion import suggestion
from weft.core.values import Effect, JsonSchema
from weft.validation import SchemaRefused, violation
from weft.validation.schema_cost import LISTED, NAMED, SINGLE, map_subschemas

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
_COUNTS: Final = (
    *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
)
_DESCRIPTION_CHARS: Final = 4_000
_MOST_NESTED: Final = 40


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared function. `name` is an identifier: `math.hypot` is `math_hypot`."""

    name: str
    description: str
    parameters: JsonSchema


def declaration_of(declared: Mapping[str, Any], name: str | None = None) -> Declaration:
    """The parsed declaration.

    Raises: `BuildError` for malformed data, or a schema that cannot be used.
    """
    inner = declared.get("function")
    fields = inner if isinstance(inner, Mapping) else declared
    written = name or _first(fields, _NAMES, None)
    if not isinstance(written, str) or not written:
        raise BuildError(
            "a declaration of a tool has no name",
            hint='it is one function, as {"name": ..., "description": ..., "parameters": {...}}',
        )
    place = f"the declaration of {printable(written, 80)}"
    parameters = _first(fields, _PARAMETERS, {})
    if not isinstance(parameters, Mapping):
        raise BuildError(f"{place}: its parameters are {type(parameters).__name__}, no object")
    whole = _SchemaNormalizer(place).parameters(parameters, fields.get("required"))
    try:
        schema = vet_schema(whole)
    except SchemaRefused as error:
        raise BuildError(f"{place}: {error}") from error
    description = _first(fields, _DESCRIPTIONS, "")
    text = printable(str(description or ""), _DESCRIPTION_CHARS, lines=True)
    return Declaration(identifier(written), text, schema)


def _first(fields: Mapping[str, Any], names: tuple[str, ...], otherwise: Any) -> Any:
    return next((fields[name] for name in names if name in fields), otherwise)


class _SchemaNormalizer:
    """Normalizes schemas to JSON Schema."""

    def __init__(self, place: str) -> None:
        self._place = place

    def parameters(self, parameters: Mapping[str, Any], required: Any) -> dict[str, Any]:
        """All parameters as one schema; some declarations contain only its properties."""
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
        if not isinstance(required, list):  # some put `true` on the parameter itself
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

    def _part(self, one: Any, place: str, depth: int) -> Any:
        return self.schema(one, place, depth + 1) if isinstance(one, Mapping) else one

    def _value(self, key: str, value: Any, place: str, depth: int) -> Any:
        if key == "type":
            return self._type(value, place)
        if key in NAMED and isinstance(value, Mapping):
            return {
                str(name): self._part(one, f"{place}.{name}".lstrip("."), depth)
                for name, one in value.items()
            }
        if key in SINGLE or key in LISTED:
            inside = f"{place}[]" if key == "items" else place
            return map_subschemas(key, value, lambda one: self._part(one, inside, depth))
        if key in _COUNTS and isinstance(value, str) and value.isdecimal():
            return int(value)  # Gemini writes 64-bit integers as strings
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
                f"{self._place}: {where} has the unknown type {printable(str(stated), 80)!r}",
                hint=suggestion(spelled, sorted({*_TYPES, *_ANY})),
            )
        return _TYPES[spelled]


_NOTHING: Final = object()
"""Represents a keyword without effect."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` or null, from the keyword `nullable` of Gemini and OpenAPI 3.0."""
    rest = {key: value for key, value in schema.items() if key != "nullable"}
    about: dict[str, Any] = {
        key: rest.pop(key) for key in ("description", "title", "default") if key in rest
    }
    return {**about, "anyOf": [rest, {"type": "null"}]}


_ANY_NAME = inspect.Parameter.VAR_KEYWORD
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY


class SchemaParameters:
    """Parameters from a JSON Schema; values reach the function as plain data."""

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema

    def encode(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """`arguments` as JSON text. Raises: `ToolArgumentError`."""
        try:
            return to_json(dict(arguments), inf_nan_mode="constants")
        except ValueError as error:
            raise ToolArgumentError(f"{tool}: {error}", hint="tools take plain data") from error

    def decode(self, tool: str, arguments: bytes) -> dict[str, Any]:
        """The values to call the function with, from JSON text. Raises: `ToolArgumentError`."""
        values: dict[str, Any] = json.loads(arguments)
        wrong = violation(values, self.schema)
        if wrong is not None:
            raise ToolArgumentError(f"{tool}: {wrong}", hint=parameter_hint(self.schema))
        return values


def tool_from_schema(
    function: Callable[..., Any],
    schema: Mapping[str, Any],
    *,
    name: str | None = None,
    pure: bool = False,
    timeout_s: float | None = None,
    resource: str | None = None,
    version: str | None = None,
    effect: Effect = "unknown",
    approve: ApprovalRule | None = None,
) -> Tool[..., Any]:
    """Make `function` a tool that models call as `schema` declares it.

        tool = weft.tool_from_schema(search, {"name": "web.search", "parameters": {...}})

    Args:
        function: sync or async; it gets the arguments by name, as plain data
        schema: one declaration in the form of OpenAI, Anthropic, Gemini, MCP or the Berkeley
            leaderboard; types such as "dict", "float", "tuple" and "STRING" become JSON Schema's
        name: the tool's name; by default the declared one as an identifier: `web.search` is
            `web_search`

    The rest is as for `tool`. Raises: `BuildError` with the place of a malformed declaration, and
    for a parameter that the function does not take.
    """
    declared = declaration_of(schema, name)
    _check_takes(function, declared.name, declared.parameters)
    signature = Signature(
        declared.description,
        SchemaParameters(declared.parameters),
        FunctionResult(inspect.Signature.empty, None),
        None,
    )
    return Tool(
        function,
        name=declared.name,
        pure=pure,
        timeout_s=timeout_s,
        resource=resource,
        version=version,
        effect=effect,
        signature=signature,
        approve=approve,
    )


def _check_takes(function: Callable[..., Any], name: str, schema: JsonSchema) -> None:
    """Raises: `BuildError` where the function cannot take the declared arguments."""
    taken = inspect.signature(function).parameters.values()
    named = {one.name: one for one in taken if one.kind not in (_ANY_NAME, _POSITIONAL)}
    declared = schema.get("properties", {})
    if not any(one.kind == _ANY_NAME for one in taken):
        for parameter in declared:
            if parameter not in named:
                raise BuildError(
                    f"tool {name}: the function takes no parameter {parameter!r}",
                    hint="give it the declared names, or **arguments",
                )
    for parameter, one in named.items():
        needed = (
            one.default is inspect.Parameter.empty and one.kind != inspect.Parameter.VAR_POSITIONAL
        )
        if needed and parameter not in schema.get("required", ()):
            raise BuildError(
                f"tool {name}: the function needs {parameter!r}, which the schema does not require",
                hint="give it a default, or list it under `required`",
            )
