"""JSON Schemas inside a document, with shorthand: `string`, `integer`, ..., `string[]`.

Says whether a schema is one; knows nothing of the values that are checked against it later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import AfterValidator, BeforeValidator, JsonValue, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_SHORT = (*TYPES, *(f"{name}[]" for name in TYPES))


def _expand(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in _SHORT:
        raise PydanticCustomError(
            "shorthand",
            "{given} is not a type",
            {"given": repr(value), "given_text": value, "choices": list(_SHORT)},
        )
    if value.endswith("[]"):
        return {"type": "array", "items": {"type": value[:-2]}}
    return {"type": value}


def _shorten(schema: dict[str, Any]) -> str | dict[str, Any]:
    short = (name for name in _SHORT if _expand(name) == schema)
    return next(short, schema)


def _check(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = list(error.absolute_path)
        if where and where[-1] == "type":
            given = str(error.instance)
            choices = {"given": repr(given), "given_text": given, "choices": list(TYPES)}
            raise PydanticCustomError(
                "shorthand", "{given} is not a type", {**choices, "where": where}
            ) from error
        raise PydanticCustomError(
            "schema", "not a JSON Schema: {why}", {"why": error.message, "where": where}
        ) from error
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise PydanticCustomError(
                "schema", "$ref {ref} leaves the document", {"ref": repr(reference), "where": []}
            )
    return schema


def _references(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef", "$schema", "$id") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


SchemaSpec = Annotated[
    dict[str, JsonValue],
    BeforeValidator(_expand),
    AfterValidator(_check),
    PlainSerializer(_shorten),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(_SHORT)},
                {"$ref": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
            ]
        }
    ),
]
"""A JSON Schema (draft 2020-12), or the name of a type."""
