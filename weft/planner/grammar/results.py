"""What may be referred to, and in which bits of a parameter a plan remembers it.

The bits above them are those of the keys of records: see `weft.planner.grammar.rules`.

Knows schemas; knows no tools and no rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.core.schema import at
from weft.core.values import JsonSchema
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.places import Place, fitting, key_of, places
from weft.planner.grammar.rules import BITS

LIST: Final[JsonSchema] = {"type": "array"}
_MOST_ITEMS: Final = 15
_MOST_OF_ALL: Final = 400


@dataclass(frozen=True, slots=True)
class Kind:
    """Results of one schema: what they hold, the earlier steps that have it, and its code.

    The code, from 1, stands for it in the slots of the steps that are yet to be written; 0 where
    none of those has such a result.
    """

    schema: JsonSchema | None
    places: tuple[Place, ...]
    numbers: tuple[int, ...]
    code: int


@dataclass(frozen=True, slots=True)
class Item:
    """Items of lists that have one schema: what they hold, and the lists, each in a kind."""

    places: tuple[Place, ...]
    lists: tuple[tuple[Kind, Place], ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """The layout of the bits that rules hand on: a slot of `bits` for each of `steps` steps.

    The first is that of number `first`. A slot holds the code of its step's result, and 0 as long
    as the step is not written.
    """

    bits: int
    first: int
    steps: int

    @property
    def numbers(self) -> range:
        """The steps that have a slot."""
        return range(self.first, self.first + self.steps)

    def set(self, number: int, code: int) -> int:
        """The bits that say that step `number` has a result with this code."""
        return code << (number - self.first) * self.bits

    def has(self, number: int, code: int) -> str:
        """The condition that it has."""
        start = (number - self.first) * self.bits
        return f"eq([{start}:{start + self.bits}], {code})"


def kinds_of(
    known: Mapping[int, JsonSchema | None],
    results: Iterable[JsonSchema | None],
    limits: GrammarLimits,
) -> list[Kind]:
    """The kinds of `known` results and of those that steps yet to be written can have."""
    schemas = {key_of(schema): schema for schema in (*known.values(), *results)}
    codes = {key: code for code, key in enumerate(dict.fromkeys(map(key_of, results)), start=1)}
    numbers: dict[str, list[int]] = {key: [] for key in schemas}
    for number in sorted(known):
        numbers[key_of(known[number])].append(number)
    return [
        Kind(schema, places(schema, limits), tuple(numbers[key]), codes.get(key, 0))
        for key, schema in schemas.items()
    ]


def items_of(kinds: Sequence[Kind], limits: GrammarLimits) -> list[Item]:
    """The items of all lists in `kinds`; of the last of very many, nothing is known."""
    schemas: dict[str, JsonSchema | None] = {}
    lists: dict[str, list[tuple[Kind, Place]]] = {}
    # Each has rules of its own for all arguments of all tools, and servers bound their number.
    most = max(1, min(_MOST_ITEMS, _MOST_OF_ALL // max(1, len(kinds))))
    for kind in kinds:
        for place in fitting(kind.places, LIST):
            item = _item(place.schema)
            key = key_of(item)
            if key not in schemas and len(schemas) >= most:
                item, key = None, key_of(None)
            schemas.setdefault(key, item)
            lists.setdefault(key, []).append((kind, place))
    return [Item(places(schema, limits), tuple(lists[key])) for key, schema in schemas.items()]


def _item(schema: JsonSchema | None) -> JsonSchema | None:
    try:
        return at(schema, [-1])
    except LookupError:
        return None  # of a list that is always empty, there is no item to know


def slots_of(kinds: Sequence[Kind], first: int, steps: int, keys: int) -> Slots:
    """A layout for `steps` steps from number `first`, or for as many as there is room for.

    `keys` bits are taken already.
    """
    bits = max((kind.code for kind in kinds), default=0).bit_length()
    return Slots(bits, first, min(steps, (BITS - keys) // bits if bits else steps))
