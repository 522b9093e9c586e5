"""Checks JSON that a model wrote against the schema it was asked for; knows no model or server."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from weft.core.errors import ModelOutputError, ModelRequestError
from weft.core.generated_text import unfenced
from weft.core.ports.model import cut_off
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused, TooMuchToCheck, compile_schema_async, misfit_async

_HINT: Final = "try `retry`; servers with structured output hold a model to its schema"


async def check_schema(schema: JsonSchema) -> None:
    """Raises: `ModelRequestError` for a schema that output cannot be checked with."""
    try:
        await compile_schema_async(schema)
    except SchemaRefused as error:
        raise ModelRequestError(f"the output schema is wrong: {error}") from None


async def parse_output(text: str, schema: JsonSchema, *, cut_at: int | None = None) -> Any:
    """The value that `text` spells, in a code fence or not, which fits `schema`.

    `cut_at`: the text was cut off at so many tokens.

    Raises: `ModelOutputError` when it does not parse or fit, `ModelRequestError` when the schema
    cannot be used.
    """
    try:
        value = json.loads(unfenced(text), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if cut_at is not None:
            raise cut_off("the output", cut_at) from None
        raise ModelOutputError(f"the output is not JSON: {error}", hint=_HINT) from None
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
