"""Whether a value of one schema can ever fit another, or any value fit it at all; if not, why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from operator import ge, gt, le, lt
from typing import Any, Final

from weft.core.schema.keywords import (
    Part,
    alternatives,
    any_element,
    any_member,
    conjuncts,
    count,
    element,
    kinds,
    listed,
    meant,
    member,
    named,
    parts,
    required,
)
from weft.core.suggestion import closest
from weft.core.values import JsonSchema

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
    """Whether it is one, by decimal digits; true for values without any (infinity, NaN)."""
    try:
        return Fraction(str(value)) % Fraction(str(step)) == 0
    except ValueError:
        return True


def _bound(schema: Mapping[str, Any], keyword: str) -> int | float | None:
    """The numeric bound `keyword`, or None."""
    limit = schema.get(keyword)
    return limit if isinstance(limit, (int, float)) and not isinstance(limit, bool) else None


def mismatch(source: JsonSchema | None, target: JsonSchema | None) -> str | None:
    """Why a value of `source` can never fit `target`, in words, or None when it may fit.

    None stands for any schema. One mismatch is reported although an empty value would pass: lists,
    or objects with free keys, whose items can never fit.
    """
    if source is None or target is None:
        return None
    try:
        clash = _Comparison(source, target).clash(source, target)
    except RecursionError:  # nested deeper than any schema written by hand
        return None
    return None if clash is None else str(clash)


@dataclass(frozen=True, slots=True)
class _Clash:
    """Why two schemas exclude each other, and where inside the value."""

    why: str
    place: str = ""

    def inside(self, step: str) -> _Clash:
        dot = "." if self.place and not self.place.startswith("[") else ""
        return _Clash(self.why, f"{step}{dot}{self.place}")

    def __str__(self) -> str:
        return f"{self.place}: {self.why}" if self.place else self.why


_NOTHING = _Clash("no value is allowed here")


class _Comparison:
    """One comparison; memoizes pairs of schemas, so that recursive schemas end."""

    def __init__(self, source: JsonSchema, target: JsonSchema) -> None:
        self._source = source
        self._target = target
        self._clashes: dict[tuple[int, int], _Clash | None] = {}

    def clash(self, a: Part, b: Part) -> _Clash | None:
        """Why no value fits both `a` (a part of the source) and `b` (of the target), or None."""
        if a is False or b is False:
            return _NOTHING
        if not isinstance(a, Mapping) or not isinstance(b, Mapping):
            return None
        pair = (id(a), id(b))
        if pair not in self._clashes:
            self._clashes[pair] = None  # a pair that contains itself proves nothing
            self._clashes[pair] = self._own(a, b) or self._composed(a, b)
        return self._clashes[pair]

    def _composed(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> _Clash | None:
        clashes = chain(
            _excluded(a, self._source, lambda part: self.clash(part, b)),
            _excluded(b, self._target, lambda part: self.clash(a, part)),
        )
        return next(clashes, None)

    def _own(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> _Clash | None:
        """The clash of the two schemas' own keywords, without references and compositions."""
        from_a, from_b = kinds(a), kinds(b)
        if not from_a or not from_b:
            return _NOTHING
        shared = from_a & from_b
        if not shared:
            return _Clash(f"{named(from_a)} can never be {named(from_b)}")
        source, target = listed(a), listed(b)
        if clash := _values(source, target) or _beyond(source, b) or _beyond(target, a):
            return clash
        if shared == {"object"}:
            return self._properties(a, b) or self._free("*", any_member(a), any_member(b))
        if shared == {"array"}:
            return self._places(a, b) or self._free("[]", any_element(a), any_element(b))
        return None

    def _properties(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> _Clash | None:
        for name in dict.fromkeys((*required(b), *required(a))):
            source, target = member(a, name), member(b, name)
            if source is False:
                return _Clash(f"it has no property {name!r}{_misspelt(name, a)}")
            if target is False:
                return _Clash(f"the property {name!r} is not allowed{meant(name, b)}")
            if clash := self._both(source, target):
                return clash.inside(name)
        return None

    def _places(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> _Clash | None:
        present = max(count(a, "minItems"), count(b, "minItems"))
        positional = max(len(parts(schema.get("prefixItems"))) for schema in (a, b))
        for index in range(min(present, positional + 1)):
            if clash := self._both(element(a, index), element(b, index)):
                return clash.inside(f"[{index}]")
        return None

    def _free(self, step: str, source: Part | None, target: Part | None) -> _Clash | None:
        """Items of lists, or properties with free keys; an empty value fits where none may be."""
        if source is False or target is False:
            return None
        clash = self._both(source, target)
        return clash and clash.inside(step)

    def _both(self, source: Part | None, target: Part | None) -> _Clash | None:
        return None if source is None or target is None else self.clash(source, target)


def _misspelt(name: str, schema: Mapping[str, Any]) -> str:
    """The end of an error about a property that `schema` needs: the one that may be meant as it.

    Either side may have the wrong name.
    """
    properties = schema.get("properties")
    names = [str(key) for key in properties] if isinstance(properties, Mapping) else []
    if close := closest(name, names):
        return f"; it has {close!r}: is one of them misspelt?"
    return meant(name, schema)


def _excluded(
    schema: Mapping[str, Any], root: JsonSchema, clash: Callable[[Part], _Clash | None]
) -> Iterator[_Clash]:
    """The clashes with what `schema` refers to, and with all alternatives it leaves."""
    for part in conjuncts(schema, root):
        if clashing := clash(part):
            yield clashing
    for group in alternatives(schema):
        clashes = [found for part in group if (found := clash(part))]
        if len(clashes) == len(group):
            yield _Clash(" and ".join(dict.fromkeys(map(str, clashes))))


def _values(source: Sequence[Any] | None, target: Sequence[Any] | None) -> _Clash | None:
    if source is None or target is None or any(value in target for value in source):
        return None
    return _Clash(f"{_quoted(source)} is never {_quoted(target)}")


def _beyond(values: Sequence[Any] | None, schema: Mapping[str, Any]) -> _Clash | None:
    """The clash of listed values with bounds that exclude all of them."""
    whys = [beyond(value, schema) for value in values or ()]
    reasons = list(dict.fromkeys(why for why in whys[:5] if why is not None))
    return _Clash(" and ".join(reasons)) if whys and None not in whys else None


def _quoted(values: Sequence[Any]) -> str:
    shown = [repr(value)[:40] for value in values[:5]] + (["..."] if len(values) > 5 else [])
    return " or ".join(shown)


_MOST_STEPS: Final = 10_000


def endless(schema: JsonSchema) -> bool:
    """Whether every value of `schema` is infinite. False where that takes too long to decide."""
    try:
        return not _Ending(schema).ends(schema)
    except RecursionError:  # nested deeper than any schema written by hand
        return False


class _Ending:
    """Searches one schema for a finite value."""

    def __init__(self, root: JsonSchema) -> None:
        self._root = root
        self._open: set[int] = set()
        self._steps = 0

    def ends(self, part: Part | None) -> bool:
        """Whether a value of `part` can be finite, without any of the parts around it."""
        self._steps += 1
        if not isinstance(part, Mapping) or self._steps > _MOST_STEPS:
            return True
        if id(part) in self._open:
            return False
        self._open.add(id(part))
        try:
            return self._own(part)
        finally:
            self._open.discard(id(part))

    def _own(self, part: Mapping[str, object]) -> bool:
        if listed(part) is not None:
            return True
        if not all(map(self.ends, conjuncts(part, self._root))):
            return False
        if not all(any(map(self.ends, group)) for group in alternatives(part)):
            return False
        kind = kinds(part)
        if kind == {"object"}:
            return all(self.ends(member(part, name)) for name in required(part))
        if kind == {"array"}:
            first = range(min(count(part, "minItems"), _MOST_STEPS))
            return all(self.ends(element(part, index)) for index in first)
        return True
