"""A JSON Schema as part of a larger one: its references go on meaning what they meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.values import JsonSchema

_OF_A_DOCUMENT = ("$id", "$schema")


class Definitions:
    """The `$defs` of a schema that is being put together from others."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def embed(self, schema: JsonSchema) -> dict[str, Any]:
        """A schema that means the same as `schema` and may stand anywhere in the larger one.

        One that refers to itself is kept among the definitions, and referred to.
        """
        own = {key: value for key, value in schema.items() if key not in _OF_A_DOCUMENT}
        name = f"d{len(self.schemas)}"
        moved = _moved(own, f"#/$defs/{name}")
        if moved == own:
            return own
        self.schemas[name] = moved
        return {"$ref": f"#/$defs/{name}"}


def _moved(value: Any, place: str) -> Any:
    """`value` with its references to "#" leading to `place` instead."""
    if isinstance(value, Mapping):
        return {
            key: place + inner[1:]
            if key == "$ref" and isinstance(inner, str) and inner.startswith("#")
            else _moved(inner, place)
            for key, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_moved(inner, place) for inner in value]
    return value
