"""The meaning of single JSON Schema keywords. Total: a malformed keyword counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from weft.core.suggestion import closest

Part: TypeAlias = Mapping[str, Any] | bool
"""A schema or a part of one: `False` allows nothing, `True` anything."""

# JSON Schema's "number" is an integer or a fraction; 1.0 counts as an integer.
_KINDS: Final[dict[str, frozenset[str]]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "fraction"}),
    "string": frozenset({"string"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}
_EVERYTHING: Final[frozenset[str]] = frozenset().union(*_KINDS.values())


def kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of values that `type`, `const` and `enum` allow."""
    stated = schema.get("type", ())
    names = [stated] if isinstance(stated, str) else parts(stated)
    valid = names and all(isinstance(name, str) and name in _KINDS for name in names)
    left = frozenset().union(*(_KINDS[name] for name in names)) if valid else _EVERYTHING
    values = listed(schema)
    return left if values is None else left & {_kind(value) for value in values}


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "fraction"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    """All values the schema allows, where it lists them."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, (list, tuple)) else None


def required(schema: Mapping[str, Any]) -> Sequence[str]:
    """The names of properties that an object must have."""
    return [name for name in parts(schema.get("required")) if isinstance(name, str)]


def member(schema: Mapping[str, Any], name: str) -> Part | None:
    """The schema of a property: False when it cannot be there, None when it is unconstrained."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return _part(properties[name])
    if "patternProperties" in schema:
        return None
    return _part(schema.get("additionalProperties"))


def any_member(schema: Mapping[str, Any]) -> Part | None:
    """The schema of every property of an object whose keys are free."""
    if "properties" in schema or "patternProperties" in schema:
        return None
    return _part(schema.get("additionalProperties"))


def element(schema: Mapping[str, Any], index: int) -> Part | None:
    """The schema of item `index` (from the end where negative): False when it cannot be there,
    None when it is unconstrained.
    """
    prefix = parts(schema.get("prefixItems"))
    if index < 0 and prefix:
        return None
    if "maxItems" in schema and index >= count(schema, "maxItems"):
        return False
    return _part(prefix[index] if 0 <= index < len(prefix) else schema.get("items"))


def any_element(schema: Mapping[str, Any]) -> Part | None:
    """The schema of every item of a list without positional items."""
    return None if "prefixItems" in schema else element(schema, 0)


def count(schema: Mapping[str, Any], keyword: str) -> int:
    """The value of a counting keyword such as minItems; 0 where it is absent."""
    value = schema.get(keyword)
    return int(value) if isinstance(value, (int, float)) else 0


def conjuncts(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Part]:
    """Schemas that must hold too: the target of $ref and the members of allOf."""
    reference = schema.get("$ref")
    target = _resolve(reference, root) if isinstance(reference, str) else None
    if target is not None:
        yield target
    yield from _schemas(schema.get("allOf"))


def alternatives(schema: Mapping[str, Any]) -> Iterator[Sequence[Part]]:
    """Groups of schemas of which at least one holds: anyOf and oneOf."""
    for keyword in ("anyOf", "oneOf"):
        if group := _schemas(schema.get(keyword)):
            yield group


def _resolve(reference: str, root: Mapping[str, Any]) -> Part | None:
    """The target of a reference inside the document, or None when it is elsewhere or missing."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target: Any = root
    for step in reference.split("/")[1:]:
        if not isinstance(target, Mapping):
            return None
        target = target.get(step.replace("~1", "/").replace("~0", "~"))
    return _part(target)


def parts(value: Any) -> Sequence[Any]:
    """`value` where it is a list, else nothing."""
    return value if isinstance(value, (list, tuple)) else ()


def _schemas(value: Any) -> Sequence[Part]:
    return [part if isinstance(part, (Mapping, bool)) else True for part in parts(value)]


def _part(value: Any) -> Part | None:
    return value if isinstance(value, (Mapping, bool)) else None


def named(kinds_: frozenset[str]) -> str:
    """Kinds in words: "integer or string"."""
    words = kinds_ - {"fraction", "integer"} | {"number"} if "fraction" in kinds_ else kinds_
    return " or ".join(sorted(words))


def meant(name: str, schema: Mapping[str, Any]) -> str:
    """The end of an error about a missing property `name`: the properties that exist."""
    properties = schema.get("properties")
    names = [str(key) for key in properties] if isinstance(properties, Mapping) else []
    if close := closest(name, names):
        return f"; did you mean {close!r}?"
    return f"; there are: {', '.join(names[:8])}" if names else ""
