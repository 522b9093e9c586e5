"""JSON Schema keywords: support, intersection and disjointness of schemas without references.

Unsupported keywords are refused, never ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, TypeAlias

from weft.decoding.diffusion.structure.languages.errors import NotASkeleton

Schema: TypeAlias = Mapping[str, Any]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANNOTATIONS: Final = _words(
    "$anchor $comment $defs $id $schema default definitions deprecated description examples"
    " readOnly title writeOnly"
)
_BOUNDS: Final = _words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf")
OF_TYPE: Final[dict[str, frozenset[str]]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "integer": _BOUNDS,
    "number": _BOUNDS,
    "string": _words("minLength maxLength pattern format"),
    "array": _words("items prefixItems minItems maxItems uniqueItems"),
    "object": _words("properties required additionalProperties minProperties maxProperties"),
}
COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "enum", "const", "type"})
_KNOWN: Final = ANNOTATIONS | COMPOSED | frozenset().union(*OF_TYPE.values())
_LARGER: Final = _words("minimum exclusiveMinimum minLength minItems minProperties")
_SMALLER: Final = _words("maximum exclusiveMaximum maxLength maxItems maxProperties")


def check_keywords(schema: object) -> Schema:
    """`schema`, if every keyword is supported; `True` allows everything. Raises: `NotASkeleton`."""
    if schema is True:
        return {}
    if schema is False:
        raise NotASkeleton("a part of the schema allows nothing")
    if not isinstance(schema, Mapping):
        raise NotASkeleton("a part of the schema is no schema")
    unknown = sorted(set(schema) - _KNOWN)
    if unknown:
        raise NotASkeleton(f"{unknown[0]!r} cannot be laid out")
    return schema


def value_types(schema: Schema) -> tuple[str, ...]:
    """The types a value may have, as far as its keywords determine them; empty: any."""
    stated = schema.get("type")
    if stated is not None:
        names = [stated] if isinstance(stated, str) else list(stated)
        if not names or any(name not in OF_TYPE for name in names):
            raise NotASkeleton(f"the type {stated!r} is none")
        return tuple(names)
    for name in ("object", "array", "string", "number"):
        if OF_TYPE[name] & schema.keys():
            return (name,)
    return ()


def without_keywords(schema: Schema, *names: str) -> dict[str, Any]:
    """A copy without the keywords `names` and annotations."""
    return {k: v for k, v in schema.items() if k not in names and k not in ANNOTATIONS}


def intersect_schemas(one: Schema, other: Schema) -> dict[str, Any]:
    """The schema of values that fit both `one` and `other`. Raises: `NotASkeleton`."""
    first, second = without_keywords(one), without_keywords(other)
    _agree_on_others(first, second)
    result = dict(first)
    for key, value in second.items():
        result[key] = _intersect_keyword(key, result[key], value) if key in result else value
    return result


def _intersect_keyword(key: str, one: Any, other: Any) -> Any:
    if one == other:
        return one
    if key == "type":
        return _common_types({"type": one}, {"type": other})
    if key == "required":
        return [*one, *(name for name in other if name not in one)]
    if key == "properties":
        shared = {
            name: intersect_schemas(check_keywords(one[name]), check_keywords(other[name]))
            for name in one
            if name in other
        }
        return {**one, **other, **shared}
    if key in _LARGER:
        return max(one, other)
    if key in _SMALLER:
        return min(one, other)
    if key == "enum":
        return [value for value in one if any(same_value(value, each) for each in other)]
    raise NotASkeleton(f"two different {key!r} for one value")


def _common_types(one: Schema, other: Schema) -> list[str]:
    left, right = value_types(one), value_types(other)
    common = [name for name in left if name in right]
    if ("integer" in left and "number" in right) or ("number" in left and "integer" in right):
        common.append("integer")
    if not common:
        raise NotASkeleton("a value cannot have two types")
    return list(dict.fromkeys(common))


def _agree_on_others(one: Schema, other: Schema) -> None:
    """Check that no rule on undeclared properties affects those that the other schema declares."""
    for this, that in ((one, other), (other, one)):
        free = this.get("additionalProperties", True)
        beyond = set(that.get("properties", ())) - set(this.get("properties", ()))
        if free is not True and free != {} and beyond:
            raise NotASkeleton("properties of one schema that another one rules out")


def same_value(one: object, other: object) -> bool:
    """Equal as JSON values: `1` is `1.0` and is not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other and isinstance(one, str) == isinstance(other, str)


def dump_json(value: object) -> str:
    """A JSON value as text. Raises: `NotASkeleton` for other values."""
    try:
        text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(_plain(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotASkeleton(f"a value of the schema is not JSON: {error}") from None
    return text


def has_type(value: object, names: Iterable[str]) -> bool:
    """Whether a JSON value is of one of the types."""
    return any(_is(value, name) for name in names)


def _is(value: object, name: str) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, float) and value.is_integer()
            return (isinstance(value, int) and not isinstance(value, bool)) or whole
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, Sequence) and not isinstance(value, str)
        case _:
            return isinstance(value, Mapping)


def _plain(value: Any) -> Any:
    """Frozen mappings and sequences as dicts and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


_COMPOSITION = frozenset({"const", "enum", "anyOf", "oneOf", "allOf", "$ref"})


def plain_type(schema: Schema) -> str:
    """Its only type, where it has no keywords of other types; else empty."""
    names = () if schema.keys() & _COMPOSITION else value_types(schema)
    return names[0] if len(names) == 1 else ""


def lists_values(schema: Schema, kind: type) -> bool:
    """Whether it only lists strings (`str`) or numbers (`float`)."""
    values = _listed_values(schema)
    name = "string" if kind is str else "number"
    alone = not without_keywords(schema, "const", "enum")
    return bool(values) and alone and all(has_type(value, (name,)) for value in values or ())


def disjoint(branches: Sequence[Schema]) -> bool:
    """Whether types, lists or one property prove that no value fits two of them."""
    return all(_apart(one, other) for one, other in combinations(branches, 2))


def _apart(one: Schema, other: Schema) -> bool:
    left, right = _listed_values(one), _listed_values(other)
    if left is not None and right is not None:
        return not any(same_value(a, b) for a in left for b in right)
    for values, schema in ((left, other), (right, one)):
        if values is not None:
            names = value_types(schema) if not schema.keys() & _COMPOSITION else ()
            return bool(names) and not any(has_type(value, names) for value in values)
    if (one.keys() | other.keys()) & _COMPOSITION:
        return False
    first, second = _kinds(one), _kinds(other)
    if first and second and not first & second:
        return True
    return first == second == {"object"} and _have_discriminator(one, other)


def _kinds(schema: Schema) -> set[str]:
    names = value_types(schema)
    return (
        {"number" if name == "integer" else name for name in names} if "type" in schema else set()
    )


def _have_discriminator(one: Schema, other: Schema) -> bool:
    """Whether a property that both require has different fixed values in them."""
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    for name in shared:
        left = _listed_values(one.get("properties", {}).get(name))
        right = _listed_values(other.get("properties", {}).get(name))
        if left and right and not any(same_value(a, b) for a in left for b in right):
            return True
    return False


def _listed_values(schema: Any) -> list[Any] | None:
    """All values it allows, if it lists them."""
    if not hasattr(schema, "get"):
        return None
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if "enum" in schema else None
