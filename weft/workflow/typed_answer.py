"""Answers of models as the values that schemas describe. Asks no model."""

from __future__ import annotations

import json
from typing import Any

from weft.core.errors import ModelOutputError
from weft.core.generated_text import unfenced
from weft.core.ports import cut_off
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


async def parsed_async(text: str, schema: JsonSchema | None, *, cut_at: int | None = None) -> Any:
    """The same; what takes long does not block the event loop.

    `cut_at`: the text was cut off at so many tokens. Raises: as `parsed`.
    """
    if schema is None:
        return text
    value = read_json(text, "the answer", cut_at=cut_at)
    _refuse(await violation_async(value, schema))
    return value


def _refuse(why: str | None) -> None:
    if why is not None:
        raise ModelOutputError(f"the answer does not fit the schema: {why}")


def read_json(text: str, what: str, *, cut_at: int | None = None) -> Any:
    """The JSON value that `text` is, in a code fence or not; `what` it is in words.

    Raises: `ModelOutputError`.
    """
    try:
        return json.loads(unfenced(text))
    except (ValueError, RecursionError) as error:
        if cut_at is not None:
            raise cut_off(what, cut_at) from error
        raise ModelOutputError(f"{what} is not JSON: {error}", hint="try `retry`") from error
