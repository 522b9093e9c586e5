"""References as rules: to steps, and inside of a map to its item. Knows no tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from weft.core.schema import mismatch
from weft.core.values import JsonSchema
from weft.planner.grammar.places import Place, fitting, key_of
from weft.planner.grammar.results import Item, Kind, Slots
from weft.planner.grammar.rules import Rules, Symbol, Way, either, literal, way

Chosen: TypeAlias = Callable[[Iterable[Place]], Iterable[Place]]
"""Those of some places that may be referred to."""

_INDEX: JsonSchema = {"type": "integer", "minimum": 0}


class References:
    """What may be referred to in one line, or in the lines of a plan that keeps `slots`."""

    def __init__(self, rules: Rules, kinds: Sequence[Kind], slots: Slots) -> None:
        self._rules = rules
        self._kinds = kinds
        self._slots = slots
        self._numbers = [self._number(kind) for kind in kinds]
        self._fitting: dict[str, list[Way]] = {}
        self._lists: dict[int, Symbol | None] = {}
        self._made: dict[tuple[str, int], Symbol | None] = {}

    def inside(self, target: JsonSchema | None, item: Item | None = None) -> Symbol | None:
        """A reference in an argument to what may fit `target`; None where nothing does.

        `item` is that of the map around it.
        """
        name = key_of(target)
        key = (name, id(item))
        if key not in self._made:
            if name not in self._fitting:
                self._fitting[name] = list(self._steps(partial(fitting, target=target)))
            ways = self._fitting[name][:]
            if item is not None:
                ways += self._paths(literal("$item"), fitting(item.places, target))
                ways += way(literal("$index")) if mismatch(_INDEX, target) is None else ()
            self._made[key] = self._rules.rule(ways)
        return self._made[key]

    def outside(self, chosen: Chosen = iter) -> Symbol | None:
        """A reference to a step's result, or to a part of it, where that place is chosen."""
        return self._rules.rule(self._steps(chosen))

    def lists(self, item: Item) -> Symbol | None:
        """A reference to a list of such items."""
        if id(item) not in self._lists:
            ways: list[Way] = []
            for kind, number in zip(self._kinds, self._numbers, strict=True):
                if number is not None:
                    ways += self._paths(number, [place for one, place in item.lists if one is kind])
            self._lists[id(item)] = self._rules.rule(ways)
        return self._lists[id(item)]

    def schemas(self) -> Iterator[JsonSchema | None]:
        """The schemas of all that can be referred to in a step's result, each once."""
        every = (place for kind in self._kinds for place in kind.places)
        yield from {place.key: place.schema for place in every}.values()

    def _steps(self, chosen: Chosen) -> Iterator[Way]:
        for kind, number in zip(self._kinds, self._numbers, strict=True):
            if number is not None:
                yield from self._paths(number, chosen(kind.places))

    def _number(self, kind: Kind) -> Symbol | None:
        """`$` and the number of a step with a result of this kind."""
        ways = [one for number in kind.numbers for one in way(literal(f"${number}"))]
        slots = self._slots.numbers if kind.code else ()
        conditions = [self._slots.has(number, kind.code) for number in slots]
        for number, condition in zip(slots, conditions, strict=True):
            ways += way(literal(f"${number}"), condition=condition)
        made = self._rules.rule(ways)
        if made is None or kind.numbers:
            return made
        return replace(made, needs=frozenset([frozenset([either(conditions)])]))

    def _paths(self, source: Symbol, chosen: Iterable[Place]) -> Iterator[Way]:
        regexes = dict.fromkeys(place.regex for place in chosen)
        if "" in regexes:
            yield from way(source)
        if behind := "|".join(filter(None, regexes)):
            yield from way(source, self._rules.terminal(behind))
