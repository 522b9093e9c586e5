"""Answers of models as the values that schemas describe. Asks no model."""

from __future__ import annotations

import json
from typing import Any

from weft.core.errors import ModelOutputError
from weft.core.values import JsonSchema
from weft.workflow.values import violation


def parsed(text: str, schema: JsonSchema | None, *, cut_off: bool = False) -> Any:
    """The value of an answer: the text, or where there is a schema the JSON in it.

    Raises: `ModelOutputError` when it does not fit.
    """
    if schema is None:
        return text
    value = read_json(text, "the answer", cut_off=cut_off)
    why = violation(value, schema)
    if why is not None:
        raise ModelOutputError(f"the answer does not fit the schema: {why}")
    return value


def read_json(text: str, what: str, *, cut_off: bool = False) -> Any:
    """The JSON value in `text`, which is `what` in words. Raises: `ModelOutputError`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "raise `max_tokens`: the answer was cut off" if cut_off else "try `retry`"
        raise ModelOutputError(f"{what} is not JSON: {error}", hint=hint) from error
