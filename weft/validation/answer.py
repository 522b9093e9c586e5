"""A model's answer as a value that fits a schema: the one check for nodes, clients and agents."""

from __future__ import annotations

from typing import Any, Final

from weft.core.errors import ModelOutputError
from weft.core.generated_json import NoJson, read_generated_json
from weft.core.ports import cut_off
from weft.core.schema import truncation_hint
from weft.core.values import JsonSchema
from weft.validation.compiled import violation, violation_async

_HINT: Final = "try `retry`; servers with structured output hold a model to its schema"


def read_answer(text: str, schema: JsonSchema, *, what: str = "the answer") -> Any:
    """The JSON value in `text`, perhaps fenced or with text around it, which has to fit `schema`.

    `what` names it in errors. May block for `WAIT_LIMIT_S`.

    Raises: `ModelOutputError`.
    """
    value = _value(text, schema, what, None)
    _refuse(violation(value, schema), what)
    return value


async def read_answer_async(
    text: str, schema: JsonSchema, *, what: str = "the answer", cut_at: int | None = None
) -> Any:
    """As `read_answer`, without blocking the event loop.

    `cut_at`: the text was cut off at that many tokens.

    Raises: `ModelOutputError`; it is an `OutputTruncated` where the value is not complete.
    """
    value = _value(text, schema, what, cut_at)
    _refuse(await violation_async(value, schema), what)
    return value


def _value(text: str, schema: JsonSchema, what: str, cut_at: int | None) -> Any:
    try:
        return read_generated_json(text, _kinds(schema), cut_off=cut_at is not None)
    except NoJson as error:
        if cut_at is not None:
            raise cut_off(what, cut_at, truncation_hint(schema)) from None
        raise ModelOutputError(f"{what} is not JSON: {error}", hint=_HINT) from None


def _refuse(why: str | None, what: str) -> None:
    if why is not None:
        raise ModelOutputError(f"{what} does not fit the schema: {why}", hint=_HINT)


def _kinds(schema: JsonSchema) -> frozenset[str]:
    """The JSON types that `schema` names; empty where it names none."""
    named = schema.get("type", ())
    names = (named,) if isinstance(named, str) else tuple(named)
    return frozenset("number" if name == "integer" else name for name in names)
