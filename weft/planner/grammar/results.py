"""The parts of results, the references to them, and the bits in which a grammar tracks results.

The bits above them are those of the keys of records: see `weft.planner.grammar.rules`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from weft.planner.grammar.rules import BITS, escaped
from weft.planner.text.writer import path_text

_NAME = r'(?:\.[A-Za-z_][A-Za-z0-9_]{0,99}|\["(?:[^"\\\x00-\x1f]|\\["\\bfnrt]){0,100}"\])'
_FARTHEST: Final = 10**9  # the reader accepts nine digits
_BACKWARDS: Final = rf"-{integers(NumberRange(Decimal(1)), 9)}"
_INDEX = rf"\[(?:-?{integers(NumberRange(Decimal(1)), 9)}|0)\]"
_MOST_BREAKS: Final = 64


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A part of a result: a regular expression of the paths to it, and its schema.

    None: unknown. `last`: `regex` includes the paths to all parts inside it.
    """

    regex: str
    schema: JsonSchema | None
    last: bool = False
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key_of(self.schema))


def places(schema: JsonSchema | None, limits: GrammarLimits) -> tuple[ResultPart, ...]:
    """The result itself and its parts, the nearest first, as many as the limits allow.

    References to further parts are allowed too, with unknown schemas.
    """
    found = [ResultPart("", schema)]
    layer = found
    for left in range(limits.path_steps, 0, -1):
        layer = [part for place in layer for part in _parts(place, left)]
        found += layer
        if len(found) > limits.paths:
            return (*found[: max(1, limits.paths)], _anywhere("", limits.path_steps))
    return tuple(found)


def _anywhere(regex: str, steps: int) -> ResultPart:
    return ResultPart(f"{regex}({_NAME}|{_INDEX}){{1,{steps}}}", None, last=True)


def _parts(place: ResultPart, depth: int) -> Iterator[ResultPart]:
    """The parts one step further; of an unknown one all parts within `depth` steps."""
    if place.schema is None:
        if not place.last:
            yield _anywhere(place.regex, depth)
        return
    stated = declared(place.schema)
    names = stated or tuple(_names(place.schema, place.schema, set()))
    for name in names:
        yield from _step(place, name, escaped(path_text([name])))
    if not stated:
        yield from _step(place, "any other name", _NAME)
    yield from _items(place, place.schema)


def _items(place: ResultPart, schema: JsonSchema) -> Iterator[ResultPart]:
    """The items of a list, grouped by schema: between two breaks they are alike."""
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
        yield ResultPart(rf"{place.regex}\[({'|'.join(indexes)})\]", item)


def _breaks(schema: object, root: JsonSchema, visited: set[int]) -> Iterator[int]:
    """The indexes from which a schema, or a part of its composition, says something else."""
    if not isinstance(schema, Mapping) or id(schema) in visited:
        return
    visited.add(id(schema))
    yield from range(len(parts(schema.get("prefixItems"))) + 1)
    most = schema.get("maxItems")
    if isinstance(most, int) and 0 <= most < _FARTHEST:
        yield most
    for part in (*conjuncts(schema, root), *chain.from_iterable(alternatives(schema))):
        yield from _breaks(part, root, visited)


def key_of(schema: JsonSchema | None) -> str:
    """A text that is equal for equal schemas."""
    return json.dumps(schema, sort_keys=True, default=str)


def _step(place: ResultPart, step: str | int, regex: str) -> Iterator[ResultPart]:
    try:
        yield ResultPart(place.regex + regex, at(place.schema, [step]))
    except LookupError:
        return


def _names(schema: object, root: JsonSchema, visited: set[int]) -> Iterator[str]:
    """The names in a schema and in its composition."""
    if not isinstance(schema, Mapping) or id(schema) in visited:
        return
    visited.add(id(schema))
    properties = schema.get("properties")
    yield from map(str, properties) if isinstance(properties, Mapping) else ()
    for part in (*conjuncts(schema, root), *chain.from_iterable(alternatives(schema))):
        yield from _names(part, root, visited)


def fitting(found: Iterable[ResultPart], target: JsonSchema | None) -> Iterator[ResultPart]:
    """The parts whose values may fit `target`."""
    fits: dict[str, bool] = {}
    for place in found:
        if place.key not in fits:
            fits[place.key] = mismatch(place.schema, target) is None
        if fits[place.key]:
            yield place


LIST: Final[JsonSchema] = {"type": "array"}
_MOST_ITEMS: Final = 15
_MOST_OF_ALL: Final = 400


@dataclass(frozen=True, slots=True)
class ResultKind:
    """Results of one schema: their parts, the earlier steps that have it, and its code.

    The code, from 1, represents it in the slots of future steps; 0 where none of them has such a
    result.
    """

    schema: JsonSchema | None
    places: tuple[ResultPart, ...]
    numbers: tuple[int, ...]
    code: int


@dataclass(frozen=True, slots=True)
class ResultItems:
    """Items of lists with one schema: their parts, and the lists, each with its kind."""

    places: tuple[ResultPart, ...]
    lists: tuple[tuple[ResultKind, ResultPart], ...]


@dataclass(frozen=True, slots=True)
class ResultSlots:
    """The layout of the parameter of rules: a slot of `bits` for each of `steps` steps.

    The first is that of number `first`. A slot holds the code of its step's result, and 0 until the
    step is written.
    """

    bits: int
    first: int
    steps: int

    @property
    def numbers(self) -> range:
        """The steps with a slot."""
        return range(self.first, self.first + self.steps)

    def set(self, number: int, code: int) -> int:
        """The bits for a result of step `number` with this code."""
        return code << (number - self.first) * self.bits

    def has(self, number: int, code: int) -> str:
        """The condition for `set`."""
        start = (number - self.first) * self.bits
        return f"eq([{start}:{start + self.bits}], {code})"


def kinds_of(
    known: Mapping[int, JsonSchema | None],
    results: Iterable[JsonSchema | None],
    limits: GrammarLimits,
) -> list[ResultKind]:
    """The kinds of `known` results and of the possible ones of future steps."""
    schemas = {key_of(schema): schema for schema in (*known.values(), *results)}
    codes = {key: code for code, key in enumerate(dict.fromkeys(map(key_of, results)), start=1)}
    numbers: dict[str, list[int]] = {key: [] for key in schemas}
    for number in sorted(known):
        numbers[key_of(known[number])].append(number)
    return [
        ResultKind(schema, places(schema, limits), tuple(numbers[key]), codes.get(key, 0))
        for key, schema in schemas.items()
    ]


def items_of(kinds: Sequence[ResultKind], limits: GrammarLimits) -> list[ResultItems]:
    """The items of all lists in `kinds`; beyond a limit, with unknown schemas."""
    schemas: dict[str, JsonSchema | None] = {}
    lists: dict[str, list[tuple[ResultKind, ResultPart]]] = {}
    # Each has its own rules for all arguments of all tools, and servers bound their number.
    most = max(1, min(_MOST_ITEMS, _MOST_OF_ALL // max(1, len(kinds))))
    for kind in kinds:
        for place in fitting(kind.places, LIST):
            item = _item(place.schema)
            key = key_of(item)
            if key not in schemas and len(schemas) >= most:
                item, key = None, key_of(None)
            schemas.setdefault(key, item)
            lists.setdefault(key, []).append((kind, place))
    return [
        ResultItems(places(schema, limits), tuple(lists[key])) for key, schema in schemas.items()
    ]


def _item(schema: JsonSchema | None) -> JsonSchema | None:
    try:
        return at(schema, [-1])
    except LookupError:
        return None  # a list that is always empty has no item


def slots_of(kinds: Sequence[ResultKind], first: int, steps: int, keys: int) -> ResultSlots:
    """A layout for `steps` steps from number `first`, or for as many as fit with `keys` bits."""
    bits = max((kind.code for kind in kinds), default=0).bit_length()
    return ResultSlots(bits, first, min(steps, (BITS - keys) // bits if bits else steps))
