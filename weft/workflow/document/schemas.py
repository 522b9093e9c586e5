"""JSON Schemas inside a document, with shorthand: `string`, `integer`, ..., `[string]`.

Says whether a schema is one; knows nothing of the values that are checked against it later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import AfterValidator, BeforeValidator, JsonValue, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")


def _expand(value: object) -> object:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return {"type": "array", "items": _named(value[0], (0,))}
    return _named(value, ()) if isinstance(value, str) else value


def _named(name: str, where: tuple[int, ...]) -> dict[str, str]:
    if name not in TYPES:
        _refuse_type(name, where)
    return {"type": name}


def _refuse_type(name: str, where: Sequence[object]) -> NoReturn:
    raise PydanticCustomError(
        "shorthand",
        "{given} is not a type",
        {"given": repr(name), "given_text": name, "choices": list(TYPES), "where": list(where)},
    )


def _shorten(schema: dict[str, Any]) -> str | list[str] | dict[str, Any]:
    for name in TYPES:
        if schema == {"type": name}:
            return name
        if schema == {"type": "array", "items": {"type": name}}:
            return [name]
    return schema


def _check(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = list(error.absolute_path)
        if where and where[-1] == "type":
            _refuse_type(str(error.instance), where)
        raise PydanticCustomError(
            "schema", "not a JSON Schema: {why}", {"why": error.message, "where": where}
        ) from error
    for key, value in _strings(schema):
        why = _objection(key, value, schema)
        if why is not None:
            raise PydanticCustomError("schema", "{why}", {"why": why, "where": []})
    return schema


def _strings(schema: JsonValue) -> Iterator[tuple[str, str]]:
    """All keys with texts in it."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if isinstance(value, str):
                yield key, value
            elif key == "patternProperties" and isinstance(value, dict):
                yield from (("pattern", pattern) for pattern in value)
            yield from _strings(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _strings(value)


def _objection(key: str, value: str, root: dict[str, JsonValue]) -> str | None:
    """What is wrong with a text in a schema that its own schema does not tell."""
    if key in ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef"):
        return f"{key} is not supported: use $ref with #/$defs/..."
    if key == "$ref" and not value.startswith("#"):
        return f"$ref {value!r} leaves the document"
    if key == "$ref" and not _exists(value, root):
        return f"$ref {value!r} leads nowhere"
    if key == "pattern":
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            return f"the pattern {value!r} is no regular expression: {error}"
    return None


def _exists(reference: str, root: JsonValue) -> bool:
    if reference != "#" and not reference.startswith("#/"):
        return False
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            name = name if name.isdecimal() and int(name) < len(root) else ""
            root = root[int(name)] if name else None
        else:
            root = root.get(name) if isinstance(root, dict) else None
        if root is None:
            return False
    return True


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
