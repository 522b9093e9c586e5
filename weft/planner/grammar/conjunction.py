"""What two JSON Schemas say together, as one. Knows keywords one by one, and no composition."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.core.schema.keywords import Part, parts, required

Keywords = Mapping[str, Any]
"""A schema without references and compositions."""


class NoKeyword(Exception):
    """What two keywords say together is no keyword; the message names them."""


def both(first: Keywords, second: Keywords) -> Keywords:
    """The schema of what fits both.

    Raises: `NoKeyword` for keywords whose conjunction is none.
    """
    if not first or not second:
        return first or second
    joined = {**first, **second}
    for keyword in first.keys() & second.keys() & _JOINED.keys():
        joined[keyword] = _JOINED[keyword](first[keyword], second[keyword])
    for keyword in first.keys() & second.keys() & _ALIKE:
        if first[keyword] != second[keyword]:
            raise NoKeyword(f"two values of {keyword!r} at once")
    if "required" in joined:
        joined["required"] = list(dict.fromkeys([*required(first), *required(second)]))
    if "properties" in joined:
        joined["properties"] = _members(first, second)
    return joined


def _members(first: Keywords, second: Keywords) -> dict[str, Part]:
    own: Mapping[str, Part] = first.get("properties") or {}
    other: Mapping[str, Part] = second.get("properties") or {}
    return {
        name: _all_of(
            own.get(name, first.get("additionalProperties", True)),
            other.get(name, second.get("additionalProperties", True)),
        )
        for name in dict.fromkeys((*own, *other))
    }


def _all_of(first: Part, second: Part) -> Part:
    if first is False or second is False:
        return False
    stated = [part for part in (first, second) if part is not True]
    return {"allOf": stated} if len(stated) > 1 else next(iter(stated), True)


def _types(first: Any, second: Any) -> list[str]:
    one, other = ([kind] if isinstance(kind, str) else parts(kind) for kind in (first, second))
    kept = [kind for kind in one if kind in other]
    whole = {"number", "integer"}
    mixed = whole & {*one} and whole & {*other} and not whole & {*kept}
    return [*kept, "integer"] if mixed else kept


def _values(first: Any, second: Any) -> list[Any]:
    texts = {json.dumps(value, sort_keys=True) for value in parts(second)}
    return [value for value in parts(first) if json.dumps(value, sort_keys=True) in texts]


_JOINED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "enum": _values,
    "items": _all_of,
    "additionalProperties": _all_of,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    "uniqueItems": lambda first, second: bool(first or second),
}
_ALIKE: Final = frozenset({"const", "pattern", "format", "multipleOf", "prefixItems"})
