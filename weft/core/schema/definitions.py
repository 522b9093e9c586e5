"""Schemas that stand alone: with the definitions that their references lead to.

Knows no values; what refers to anything but definitions cannot be moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from weft.core.values import JsonSchema

_DEFINITIONS: Final = ("$defs", "definitions")
_LOCAL: Final = ("#/$defs/", "#/definitions/")


def array_of(schema: JsonSchema | None) -> JsonSchema:
    """The schema of a list of values of `schema`; of a list of anything where that is None."""
    try:
        own = None if schema is None else standing_alone(schema, schema)
    except RecursionError:  # nested deeper than anything that was written to be understood
        own = None
    if own is None:
        return {"type": "array"}
    definitions = {key: own[key] for key in _DEFINITIONS if key in own}
    items = {key: value for key, value in own.items() if key not in _DEFINITIONS}
    return {"type": "array", "items": items, **definitions}


def standing_alone(part: JsonSchema, root: JsonSchema) -> JsonSchema | None:
    """`part` of `root` with the definitions it needs; None when it refers to anything else."""
    definitions = {key: root[key] for key in _DEFINITIONS if key in root}
    found = set(references(part))
    if found:
        found.update(references(definitions))
    if not all(reference.startswith(_LOCAL) for reference in found):
        return None
    return {**part, **definitions} if found else part


def references(value: Any) -> Iterator[str]:
    """The target of every `$ref` inside `value`, a schema or a part of one."""
    if isinstance(value, Mapping):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from references(item)
