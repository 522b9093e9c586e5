"""Checks JSON that a model wrote against the schema it was asked for; knows no model or server."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from weft.core.errors import ModelOutputError, ModelRequestError
from weft.core.values import JsonSchema


def check_schema(schema: JsonSchema) -> None:
    """Raises: `ModelRequestError` when `schema` is no JSON Schema (draft 2020-12)."""
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        raise ModelRequestError(f"the output schema is wrong: {error.message}") from None


def parse_output(text: str, schema: JsonSchema) -> Any:
    """The value that `text` spells, which fits `schema`. References out of the schema stay closed.

    Raises: `ModelOutputError` when it does not parse or fit, `ModelRequestError` when the schema
    refers to what it does not hold.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(
            f"the output is not JSON: {error}", hint="a larger max_tokens helps when it was cut off"
        ) from None
    # An empty registry: a schema must not make this process fetch anything.
    validator = Draft202012Validator(dict(schema), registry=Registry())
    try:
        wrong = best_match(validator.iter_errors(value))
    except Unresolvable as error:
        raise ModelRequestError(f"the output schema refers to {error.ref!r}, not in it") from None
    if wrong is not None:
        raise ModelOutputError(
            f"the output does not fit its schema at {wrong.json_path}: {wrong.message[:200]}"
        )
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
