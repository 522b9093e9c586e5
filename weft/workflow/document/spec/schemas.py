"""JSON Schemas in a document, with shorthand (`string`, `[string]`), and checks of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, JsonValue, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from weft.core.content import MEDIA
from weft.validation import SchemaRefused, compile_schema

MEDIA_TYPES: Mapping[str, dict[str, Any]] = {kind: cls.json_schema() for kind, cls in MEDIA.items()}
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null", *MEDIA_TYPES)


def _expand(value: object) -> object:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return {"type": "array", "items": _named(value[0], (0,))}
    named = value.get("type") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(named, str) and named in MEDIA_TYPES:
        return {**value, **MEDIA_TYPES[named]}
    return _named(value, ()) if isinstance(value, str) else value


def _named(name: str, where: tuple[int, ...]) -> dict[str, Any]:
    if name not in TYPES:
        _refuse_type(name, where)
    return dict(MEDIA_TYPES.get(name) or {"type": name})


def _refuse_type(name: str, where: Sequence[object]) -> NoReturn:
    raise PydanticCustomError(
        "shorthand",
        "{given} is not a type",
        {"given": repr(name), "given_text": name, "choices": list(TYPES), "where": list(where)},
    )


def _shorten(schema: dict[str, Any]) -> str | list[str] | dict[str, Any]:
    for name in TYPES:
        if schema == _named(name, ()):
            return name
        if schema == {"type": "array", "items": _named(name, ())}:
            return [name]
    return schema


def _check(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if "$id" in schema:  # embedded in other schemas it would change the meaning of references
        why = "$id is not supported: use $ref with #/$defs/..."
        raise PydanticCustomError("schema", "{why}", {"why": why, "where": []})
    try:
        compile_schema(schema)
    except SchemaRefused as error:
        where = list(error.place)
        if where and where[-1] == "type" and isinstance(error.found, str):
            _refuse_type(error.found, where)
        raise PydanticCustomError("schema", "{why}", {"why": str(error), "where": where}) from error
    return schema


SchemaSpec = Annotated[
    dict[str, JsonValue],
    BeforeValidator(_expand),
    AfterValidator(_check),
    PlainSerializer(_shorten),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(TYPES)},
                {"type": "array", "items": {"enum": list(TYPES)}, "minItems": 1, "maxItems": 1},
                {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
            ]
        }
    ),
]
"""A JSON Schema (draft 2020-12), the name of a type, or a list with the name of a type."""
