"""Python types as JSON Schemas: what `flow.input` and `schema=` take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from weft.core.errors import BuildError


def schema_of(kind: Any) -> Any:
    """A JSON Schema from a Python type; a schema or the name of a type stays as it is.

    Raises: `BuildError` for types that JSON cannot describe.
    """
    if kind is None or isinstance(kind, (str, Mapping, list)):
        return {} if kind is None else kind
    try:
        return _untitled(TypeAdapter[Any](kind).json_schema())
    except (PydanticUserError, TypeError, NameError) as error:
        hint = "use str, int, list[str], a dataclass, a pydantic model or a JSON Schema"
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise BuildError(f"{kind!r} has no JSON Schema: {reason}", hint=hint) from error


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic derives from names."""
    if isinstance(schema, dict):
        return {
            key: {name: _untitled(part) for name, part in value.items()}
            if key in ("properties", "$defs")
            else _untitled(value)
            for key, value in schema.items()
            if key != "title"
        }
    return [_untitled(item) for item in schema] if isinstance(schema, list) else schema
