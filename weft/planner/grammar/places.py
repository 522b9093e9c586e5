"""What results hold, and how their parts are referred to. Knows schemas; knows no plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, pairwise
from typing import Final

from weft.core.schema import at, declared, mismatch
from weft.core.schema.keywords import alternatives, conjuncts, parts
from weft.core.values import JsonSchema
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.numbers import NumberRange, integers
from weft.planner.grammar.rules import escaped
from weft.planner.text.writer import path_text

_NAME = r'(?:\.[A-Za-z_][A-Za-z0-9_]{0,99}|\["(?:[^"\\\x00-\x1f]|\\["\\bfnrt]){0,100}"\])'
_FARTHEST: Final = 10**9  # a reader takes nine digits
_BACKWARDS: Final = rf"-{integers(NumberRange(Decimal(1)), 9)}"
_INDEX = rf"\[(?:-?{integers(NumberRange(Decimal(1)), 9)}|0)\]"
_MOST_BREAKS: Final = 64


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a result: a regular expression of the paths to it, and its schema.

    None: nothing is known of what lies there. `last`: the paths to what lies behind are in it.
    """

    regex: str
    schema: JsonSchema | None
    last: bool = False
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.schema))


def places(schema: JsonSchema | None, limits: GrammarLimits) -> tuple[Place, ...]:
    """The result itself and its parts, the nearest first, as many as the limits allow.

    Where there are more, all others can be referred to as well, with nothing known of them.
    """
    found = [Place("", schema)]
    layer = found
    for left in range(limits.path_steps, 0, -1):
        layer = [part for place in layer for part in _parts(place, left)]
        found += layer
        if len(found) > limits.paths:
            return (*found[: max(1, limits.paths)], _anywhere("", limits.path_steps))
    return tuple(found)


def _anywhere(regex: str, steps: int) -> Place:
    return Place(f"{regex}({_NAME}|{_INDEX}){{1,{steps}}}", None, last=True)


def _parts(place: Place, depth: int) -> Iterator[Place]:
    """What lies one step further; where nothing is known, whatever is up to `depth` steps away."""
    if place.schema is None:
        if not place.last:
            yield _anywhere(place.regex, depth)
        return
    said = declared(place.schema)
    names = said or tuple(_names(place.schema, place.schema, set()))
    for name in names:
        yield from _step(place, name, escaped(path_text([name])))
    if not said:
        yield from _step(place, "any other name", _NAME)
    yield from _items(place, place.schema)


def _items(place: Place, schema: JsonSchema) -> Iterator[Place]:
    """The items of a list, by their schemas: between two breaks they are all alike."""
    alike: dict[str, tuple[list[str], JsonSchema | None]] = {}
    breaks = sorted({0, _FARTHEST, *_breaks(schema, schema, set())})[: _MOST_BREAKS + 1]
    for first, end in pairwise(breaks):
        with suppress(LookupError):
            item = at(schema, [first])
            regex = integers(NumberRange(Decimal(first), Decimal(end - 1)), 9)
            alike.setdefault(key_of(item), ([], item))[0].append(regex)
    with suppress(LookupError):
        item = at(schema, [-1])
        alike.setdefault(key_of(item), ([], item))[0].append(_BACKWARDS)
    for indexes, item in alike.values():
        yield Place(rf"{place.regex}\[({'|'.join(indexes)})\]", item)


def _breaks(schema: object, root: JsonSchema, seen: set[int]) -> Iterator[int]:
    """The indexes at which a schema, or what it is composed of, begins to say something else."""
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield from range(len(parts(schema.get("prefixItems"))) + 1)
    most = schema.get("maxItems")
    if isinstance(most, int) and 0 <= most < _FARTHEST:
        yield most
    for part in (*conjuncts(schema, root), *chain.from_iterable(alternatives(schema))):
        yield from _breaks(part, root, seen)


def key_of(schema: JsonSchema | None) -> str:
    """Equal for equal schemas."""
    return json.dumps(schema, sort_keys=True, default=str)


def _step(place: Place, step: str | int, regex: str) -> Iterator[Place]:
    try:
        yield Place(place.regex + regex, at(place.schema, [step]))
    except LookupError:
        return


def _names(schema: object, root: JsonSchema, seen: set[int]) -> Iterator[str]:
    """The names that a schema mentions, itself or in what it is composed of."""
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    seen.add(id(schema))
    properties = schema.get("properties")
    yield from map(str, properties) if isinstance(properties, Mapping) else ()
    for part in (*conjuncts(schema, root), *chain.from_iterable(alternatives(schema))):
        yield from _names(part, root, seen)


def fitting(found: Iterable[Place], target: JsonSchema | None) -> Iterator[Place]:
    """The places whose values may fit `target`."""
    known: dict[str, bool] = {}
    for place in found:
        if place.key not in known:
            known[place.key] = mismatch(place.schema, target) is None
        if known[place.key]:
            yield place
