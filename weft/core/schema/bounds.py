"""Whether a single value lies beyond what a schema's bounds allow. Knows no types and no parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, Final

_NUMBER: Final[dict[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lt, "less than"),
    "exclusiveMinimum": (le, "not more than"),
    "maximum": (gt, "more than"),
    "exclusiveMaximum": (ge, "not less than"),
}
_LENGTH: Final[dict[type, tuple[str, str, str]]] = {
    str: ("minLength", "maxLength", "characters"),
    list: ("minItems", "maxItems", "items"),
    dict: ("minProperties", "maxProperties", "properties"),
}


def beyond(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Why the bounds of `schema` exclude the JSON value `value`, in words, or None."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        for keyword, (excludes, words) in _NUMBER.items():
            limit = _bound(schema, keyword)
            if limit is not None and excludes(value, limit):
                return f"{value!r} is {words} {limit}"
        step = _bound(schema, "multipleOf")
        if step is not None and step > 0 and not _is_multiple(value, step):
            return f"{value!r} is not a multiple of {step}"
        return None
    minimum, maximum, what = _LENGTH.get(type(value), ("", "", ""))
    if not what:
        return None
    least, most = _bound(schema, minimum), _bound(schema, maximum)
    if least is not None and len(value) < least:
        return f"{len(value)} {what} are fewer than {least}"
    if most is not None and len(value) > most:
        return f"{len(value)} {what} are more than {most}"
    return None


def _is_multiple(value: int | float, step: int | float) -> bool:
    """Whether it is one, by their decimal digits. What has none is not told to be none."""
    try:
        return Fraction(str(value)) % Fraction(str(step)) == 0
    except ValueError:
        return True


def _bound(schema: Mapping[str, Any], keyword: str) -> int | float | None:
    """The bound `keyword`; None where there is none, or something that is no number."""
    limit = schema.get(keyword)
    return limit if isinstance(limit, (int, float)) and not isinstance(limit, bool) else None
