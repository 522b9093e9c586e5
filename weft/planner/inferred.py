"""The schema of a value that is there, so that what is planned next can refer to its parts.

Describes exactly the shape that it sees; knows nothing of what the tool might return another time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.core.values import JsonSchema

_DEPTH: Final = 6
_ITEMS: Final = 20
_MEMBERS: Final = 40
_KINDS: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def schema_of(value: Any, depth: int = _DEPTH) -> JsonSchema:
    """A JSON Schema that `value` fits: kinds, members and items, as far as they are looked at.

    Objects with very many members, long lists and deep parts are described less exactly.
    """
    if value is None:
        return {"type": "null"}
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return {"type": name}
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _array(value, depth)
    return {}


def _object(value: Mapping[str, Any], depth: int) -> JsonSchema:
    if depth == 0 or len(value) > _MEMBERS or not all(isinstance(name, str) for name in value):
        return {"type": "object"}
    members = {name: schema_of(item, depth - 1) for name, item in value.items()}
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def _array(value: Sequence[Any], depth: int) -> JsonSchema:
    if depth == 0 or len(value) > _ITEMS:
        return {"type": "array"}
    items: list[JsonSchema] = []
    for item in value:
        found = schema_of(item, depth - 1)
        if found not in items:
            items.append(found)
    bound = {"type": "array", "minItems": len(value), "maxItems": len(value)}
    if not items:
        return bound
    return {**bound, "items": items[0] if len(items) == 1 else {"anyOf": items}}
