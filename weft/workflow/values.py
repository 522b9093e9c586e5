"""Checking plain values against JSON Schemas. Knows nothing of where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


def violation(value: object, schema: Mapping[str, Any]) -> str | None:
    """Why `value` does not fit `schema`, in words, or None when it fits."""
    try:
        error = best_match(Draft202012Validator(schema).iter_errors(value))
    except RecursionError:
        return "it, or its schema, goes on for ever"
    if error is None:
        return None
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    )
    message = error.message if len(error.message) <= 200 else f"{error.message[:200]}..."
    return f"at {where.lstrip('.')}: {message}" if where else message
