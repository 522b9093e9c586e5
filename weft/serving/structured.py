"""Checks JSON that a model wrote against the schema it was asked for; knows no model or server."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from weft.core.errors import ModelOutputError, ModelRequestError
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused, TooMuchToCheck, compile_schema, misfit_async


def check_schema(schema: JsonSchema) -> None:
    """Raises: `ModelRequestError` for a schema that output cannot be checked with."""
    try:
        compile_schema(schema)
    except SchemaRefused as error:
        raise ModelRequestError(f"the output schema is wrong: {error}") from None


async def parse_output(text: str, schema: JsonSchema) -> Any:
    """The value that `text` spells, which fits `schema`.

    Raises: `ModelOutputError` when it does not parse or fit, `ModelRequestError` when the schema
    cannot be used.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(
            f"the output is not JSON: {error}", hint="a larger max_tokens helps when it was cut off"
        ) from None
    try:
        wrong = await misfit_async(value, schema)
    except SchemaRefused as error:
        raise ModelRequestError(f"the output schema is wrong: {error}") from None
    except TooMuchToCheck as error:
        raise ModelOutputError(f"the output cannot be checked: {error}") from None
    if wrong is not None:
        raise ModelOutputError(f"the output does not fit its schema: {wrong}")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
