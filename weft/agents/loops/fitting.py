"""Answers of the type that was asked for, or why not, in words a model can act on.

Knows JSON Schemas; fetches nothing.
"""

from __future__ import annotations

from typing import Any

from weft.agents.loops.excerpt import text_of
from weft.agents.loops.written import decoded
from weft.core.errors import BuildError, ModelOutputError
from weft.core.generated_text import is_blank
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused, TooMuchToCheck, compile_schema, misfit


def check_schema(schema: JsonSchema) -> None:
    """Raises: `BuildError` when `schema` is none that answers can be checked with."""
    try:
        compile_schema(schema)
    except SchemaRefused as error:
        raise BuildError(
            f"the answer's schema is wrong: {error}", hint="give a JSON Schema of draft 2020-12"
        ) from None


def fitted(written: Any, schema: JsonSchema | None) -> Any:
    """The answer that was `written`, as text or JSON: of the `schema`, or without one a text.

    Raises: `ModelOutputError` when it is not, or when it is empty.
    """
    if schema is None:
        text = text_of(written).strip()
        if is_blank(text):
            raise ModelOutputError("the answer is empty")
        return text
    wrong = _misfit(written, schema)
    if wrong is not None and isinstance(written, str):
        written = decoded(written, "the answer")
        wrong = _misfit(written, schema)
    if wrong is not None:
        raise ModelOutputError(f"the answer does not fit its schema: {wrong}")
    return written


def _misfit(value: Any, schema: JsonSchema) -> str | None:
    try:
        return misfit(value, schema)
    except (SchemaRefused, TooMuchToCheck) as error:
        return str(error)
