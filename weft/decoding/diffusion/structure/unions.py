"""What alternatives have to do with one another. Knows single schemas, no references."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from weft.decoding.diffusion.structure.keywords import Schema, has_type, same, types, without

_COMPOSED = frozenset({"const", "enum", "anyOf", "oneOf", "allOf", "$ref"})


def plain_type(schema: Schema) -> str:
    """Its only type, where it says nothing else than that and what belongs to it; else empty."""
    names = () if schema.keys() & _COMPOSED else types(schema)
    return names[0] if len(names) == 1 else ""


def listed(schema: Schema, kind: type) -> bool:
    """Whether it lists strings (`str`) or numbers (`float`) and says nothing else."""
    values = _values(schema)
    name = "string" if kind is str else "number"
    alone = not without(schema, "const", "enum")
    return bool(values) and alone and all(has_type(value, (name,)) for value in values or ())


def disjoint(branches: Sequence[Schema]) -> bool:
    """Whether no value can fit two of them, as far as types, lists and one property tell."""
    return all(_apart(one, other) for one, other in combinations(branches, 2))


def _apart(one: Schema, other: Schema) -> bool:
    left, right = _values(one), _values(other)
    if left is not None and right is not None:
        return not any(same(a, b) for a in left for b in right)
    for values, schema in ((left, other), (right, one)):
        if values is not None:
            names = types(schema) if not schema.keys() & _COMPOSED else ()
            return bool(names) and not any(has_type(value, names) for value in values)
    if (one.keys() | other.keys()) & _COMPOSED:
        return False
    first, second = _kinds(one), _kinds(other)
    if first and second and not first & second:
        return True
    return first == second == {"object"} and _told_apart(one, other)


def _kinds(schema: Schema) -> set[str]:
    names = types(schema)
    return (
        {"number" if name == "integer" else name for name in names} if "type" in schema else set()
    )


def _told_apart(one: Schema, other: Schema) -> bool:
    """Whether a property that both require has different fixed values in them."""
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    for name in shared:
        left = _values(one.get("properties", {}).get(name))
        right = _values(other.get("properties", {}).get(name))
        if left and right and not any(same(a, b) for a in left for b in right):
            return True
    return False


def _values(schema: Any) -> list[Any] | None:
    """All values it allows, where it lists them."""
    if not hasattr(schema, "get"):
        return None
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None
