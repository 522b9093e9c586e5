"""Answers of models as the values that schemas describe. Asks no model."""

from __future__ import annotations

import json
from typing import Any

from weft.core.errors import ModelOutputError
from weft.core.generated_text import unfenced
from weft.core.values import JsonSchema
from weft.workflow.values import violation, violation_async


def parsed(text: str, schema: JsonSchema | None) -> Any:
    """The value of an answer: the text, or where there is a schema the JSON in it.

    Raises: `ModelOutputError` when it does not fit.
    """
    if schema is None:
        return text
    value = read_json(text, "the answer")
    _refuse(violation(value, schema))
    return value


async def parsed_async(text: str, schema: JsonSchema | None, *, cut_off: bool = False) -> Any:
    """The same; what takes long does not block the event loop. Raises: as `parsed`."""
    if schema is None:
        return text
    value = read_json(text, "the answer", cut_off=cut_off)
    _refuse(await violation_async(value, schema))
    return value


def _refuse(why: str | None) -> None:
    if why is not None:
        raise ModelOutputError(f"the answer does not fit the schema: {why}")


def read_json(text: str, what: str, *, cut_off: bool = False) -> Any:
    """The JSON value that `text` is, in a code fence or not; `what` it is in words.

    Raises: `ModelOutputError`.
    """
    try:
        return json.loads(unfenced(text))
    except (ValueError, RecursionError) as error:
        hint = "raise `max_tokens`: the answer was cut off" if cut_off else "try `retry`"
        raise ModelOutputError(f"{what} is not JSON: {error}", hint=hint) from error
