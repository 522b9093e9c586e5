"""Checking plain values against JSON Schemas. Knows nothing of where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.validation import SchemaRefused, TooMuchToCheck, misfit, misfit_async


def violation(value: object, schema: Mapping[str, Any]) -> str | None:
    """Why `value` does not fit `schema`, in words, or None when it fits. May block."""
    try:
        return misfit(value, schema)
    except (SchemaRefused, TooMuchToCheck) as error:
        return str(error)


async def violation_async(value: object, schema: Mapping[str, Any]) -> str | None:
    """The same; what takes long does not block the event loop."""
    try:
        return await misfit_async(value, schema)
    except (SchemaRefused, TooMuchToCheck) as error:
        return str(error)
