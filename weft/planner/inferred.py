"""The schema of a value that is there, so that what is planned next can refer to its parts.

Describes exactly the shape that it sees; knows nothing of what the tool might return another time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.core.values import JsonSchema

_DEPTH: Final = 6
_PARTS: Final = 200
_ITEMS: Final = 20
_MEMBERS: Final = 40
_KINDS: Final = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


def schema_of(value: Any) -> JsonSchema:
    """A JSON Schema that `value` fits: kinds, members and items, as far as they are looked at.

    Objects with very many members, long lists and deep parts are described less exactly, so that
    no value makes a schema of more than about 200 parts.
    """
    schema = _schema(value, 0)
    for depth in range(1, _DEPTH + 1):
        deeper = _schema(value, depth)
        if _parts(deeper) > _PARTS:
            break
        schema = deeper
    return schema


def _parts(schema: object) -> int:
    if isinstance(schema, Mapping):
        return 1 + sum(map(_parts, schema.values()))
    return sum(map(_parts, schema)) if isinstance(schema, list) else 0


def _schema(value: Any, depth: int) -> JsonSchema:
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
    members = {name: _schema(item, depth - 1) for name, item in value.items()}
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
        found = _schema(item, depth - 1)
        if found not in items:
            items.append(found)
    bound = {"type": "array", "minItems": len(value), "maxItems": len(value)}
    if not items:
        return bound
    return {**bound, "items": items[0] if len(items) == 1 else {"anyOf": items}}
