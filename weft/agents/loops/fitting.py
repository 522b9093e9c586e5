"""Answers of the type that was asked for, or why not, in words a model can act on.

Knows JSON Schemas; fetches nothing.
"""

from __future__ import annotations

import re
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from weft.agents.loops.excerpt import text_of
from weft.agents.loops.written import decoded
from weft.core.errors import BuildError, ModelOutputError
from weft.core.values import JsonSchema

_MESSAGE_CHARS: Final = 200


def check_schema(schema: JsonSchema) -> None:
    """Raises: `BuildError` when `schema` is no JSON Schema (draft 2020-12)."""
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        raise BuildError(
            f"the answer's schema is wrong at {error.json_path}: {error.message[:_MESSAGE_CHARS]}",
            hint="give a JSON Schema of draft 2020-12",
        ) from None


def misfit(value: Any, schema: JsonSchema) -> str | None:
    """Why `value` does not fit `schema`, or None when it fits."""
    validator = Draft202012Validator(dict(schema), registry=Registry())
    try:
        wrong = best_match(validator.iter_errors(value))
    except Unresolvable as error:
        return f"its schema refers to {error.ref!r}, which is not in it"
    except re.error as error:
        return f"its schema has a pattern that is none: {error}"
    except RecursionError:
        return "it, or its schema, goes on for ever"
    if wrong is None:
        return None
    message = wrong.message
    if len(message) > _MESSAGE_CHARS:
        message = f"{message[:_MESSAGE_CHARS]}..."
    return message if wrong.json_path == "$" else f"at {wrong.json_path}: {message}"


def fitted(written: Any, schema: JsonSchema | None) -> Any:
    """The answer that was `written`, as text or JSON: of the `schema`, or without one a text.

    Raises: `ModelOutputError` when it is not, or when it is empty.
    """
    if schema is None:
        text = text_of(written).strip()
        if not text:
            raise ModelOutputError("the answer is empty")
        return text
    wrong = misfit(written, schema)
    if wrong is not None and isinstance(written, str):
        written = decoded(written, "the answer")
        wrong = misfit(written, schema)
    if wrong is not None:
        raise ModelOutputError(f"the answer does not fit its schema: {wrong}")
    return written
