"""Parts of a schema that no value fits, which is hardly ever meant. Knows no tool."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

from weft.agents.foreign.text import shown
from weft.core.schema import mismatch
from weft.core.schema.keywords import Part, listed
from weft.core.values import JsonSchema

_DEEPEST = 16


class ContradictorySchema(UserWarning):
    """No value fits a parameter of a tool, so no model can give it."""


def warn_of_contradictions(tool: str, parameters: JsonSchema) -> None:
    """Warn of each parameter of `tool` that no value fits: no model can then give it."""
    for found in contradictions(parameters):
        place = shown(found, 100)
        warnings.warn(
            f"tool {tool}: no value fits {place}: its type and its values exclude each other",
            ContradictorySchema,
            stacklevel=3,
        )


def contradictions(schema: Part, place: str = "", depth: int = 0) -> Iterator[str]:
    """Where in `schema` values are listed of which its own type allows none."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    values = listed(schema)
    if values is not None and all(mismatch({"const": one}, schema) for one in values):
        yield place or "the whole"
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        yield from contradictions(part, f"{place}.{name}" if place else str(name), depth + 1)
    if "items" in schema:
        yield from contradictions(schema["items"], f"{place}[]", depth + 1)
