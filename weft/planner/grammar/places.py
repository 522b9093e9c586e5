"""What results hold, and how their parts are referred to. Knows schemas; knows no plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Final

from weft.core.schema import at, declared, mismatch
from weft.core.schema.keywords import alternatives, conjuncts
from weft.core.values import JsonSchema
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.numbers import integers
from weft.planner.text.writer import path_text

_NAME = r"\.[A-Za-z_][A-Za-z0-9_]{0,29}"
_INDEX = r"\[[0-9]{1,2}\]"
# With these, one item of a list need not be like another one.
_TELLING_APART: Final = frozenset({"prefixItems", "$ref", "allOf", "anyOf", "oneOf"})
_LOOKED_AT: Final = (-1, *range(10))
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$&~#-]")


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a result: a regular expression of the paths to it, and its schema.

    None: nothing is known of what lies there. `last`: the paths to what lies behind are in it.
    """

    regex: str
    schema: JsonSchema | None
    last: bool = False


def places(schema: JsonSchema | None, limits: GrammarLimits) -> tuple[Place, ...]:
    """The result itself and its parts, the nearest first, as many as the limits allow."""
    found = [Place("", schema)]
    layer = found
    for depth in range(limits.path_steps, 0, -1):
        layer = [part for place in layer for part in _parts(place, depth)]
        found += layer
        if len(found) >= limits.paths:
            break
    return tuple(found[: max(1, limits.paths)])


def _parts(place: Place, depth: int) -> Iterator[Place]:
    """What lies one step further; where nothing is known, whatever is up to `depth` steps away."""
    if place.schema is None:
        if not place.last:
            yield Place(f"{place.regex}({_NAME}|{_INDEX}){{1,{depth}}}", None, last=True)
        return
    names = declared(place.schema) or tuple(_names(place.schema, place.schema, set()))
    for name in names:
        yield from _step(place, name, _escaped(path_text([name])))
    if not names:
        yield from _step(place, "any", _NAME)
    yield from _items(place, place.schema)


def _items(place: Place, schema: JsonSchema) -> Iterator[Place]:
    if schema.keys().isdisjoint(_TELLING_APART):
        most = min(int(schema.get("maxItems", 100)), 100) - 1
        yield from _step(place, 0, rf"\[({integers(Decimal(-1), Decimal(most))})\]")
        return
    alike: dict[str, tuple[list[str], JsonSchema | None]] = {}
    for index in _LOOKED_AT:
        with suppress(LookupError):
            item = at(schema, [index])
            alike.setdefault(key_of(item), ([], item))[0].append(str(index))
    for indexes, item in alike.values():
        yield Place(rf"{place.regex}\[({'|'.join(indexes)})\]", item)


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


def fitting(found: tuple[Place, ...], target: JsonSchema | None) -> list[Place]:
    """The places whose values may fit `target`."""
    return [place for place in found if mismatch(place.schema, target) is None]


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)
