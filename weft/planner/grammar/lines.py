"""Rules for the lines of a plan: calls, maps, conditions, the join, and their references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from weft.core.schema import array_of, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.grammar.entries import RecordEntry, record, row
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.results import (
    ResultItems,
    ResultKind,
    ResultPart,
    ResultSlots,
    fitting,
    key_of,
)
from weft.planner.grammar.rules import (
    GrammarRules,
    GrammarSymbol,
    Production,
    either,
    literal,
    production,
)
from weft.planner.grammar.scalars import KEY_CHARACTER
from weft.planner.grammar.values import ValueRules
from weft.planner.signature import parameter_of, parameters_of, required_by
from weft.planner.text.lines import JOIN
from weft.planner.text.writer import parameter_name, tool_name

Chosen: TypeAlias = Callable[[Iterable[ResultPart]], Iterable[ResultPart]]
"""Selects the parts that may be referred to."""

_INDEX: JsonSchema = {"type": "integer", "minimum": 0}


class ReferenceRules:
    """References in one line, or in the lines of a plan with `slots`."""

    def __init__(
        self, rules: GrammarRules, kinds: Sequence[ResultKind], slots: ResultSlots
    ) -> None:
        self._rules = rules
        self._kinds = kinds
        self._slots = slots
        self._numbers = [self._number(kind) for kind in kinds]
        self._fitting: dict[str, list[Production]] = {}
        self._lists: dict[int, GrammarSymbol | None] = {}
        self._made: dict[tuple[str, int], GrammarSymbol | None] = {}

    def inside(
        self, target: JsonSchema | None, item: ResultItems | None = None
    ) -> GrammarSymbol | None:
        """A reference in an argument to a part that may fit `target`, or None.

        `item` is that of the enclosing map.
        """
        name = key_of(target)
        key = (name, id(item))
        if key not in self._made:
            if name not in self._fitting:
                self._fitting[name] = list(self._steps(partial(fitting, target=target)))
            choices = self._fitting[name][:]
            if item is not None:
                choices += self._paths(literal("$item"), fitting(item.places, target))
                choices += production(literal("$index")) if mismatch(_INDEX, target) is None else ()
            self._made[key] = self._rules.rule(choices)
        return self._made[key]

    def whole(self) -> GrammarSymbol | None:
        """A step, as `$3`."""
        found = [number for number in self._numbers if number is not None]
        return self._rules.rule([one for number in found for one in production(number)])

    def outside(self, chosen: Chosen = iter) -> GrammarSymbol | None:
        """A reference to a step's result or a chosen part of it."""
        return self._rules.rule(self._steps(chosen))

    def lists(self, item: ResultItems) -> GrammarSymbol | None:
        """A reference to a list of such items."""
        if id(item) not in self._lists:
            choices: list[Production] = []
            for kind, number in zip(self._kinds, self._numbers, strict=True):
                if number is not None:
                    parts = [part for one, part in item.lists if one is kind]
                    choices += self._paths(number, parts)
            self._lists[id(item)] = self._rules.rule(choices)
        return self._lists[id(item)]

    def schemas(self) -> Iterator[JsonSchema | None]:
        """The distinct schemas of everything that can be referred to in a step's result."""
        every = (place for kind in self._kinds for place in kind.places)
        yield from {place.key: place.schema for place in every}.values()

    def _steps(self, chosen: Chosen) -> Iterator[Production]:
        for kind, number in zip(self._kinds, self._numbers, strict=True):
            if number is not None:
                yield from self._paths(number, chosen(kind.places))

    def _number(self, kind: ResultKind) -> GrammarSymbol | None:
        """`$` and the number of a step with a result of this kind."""
        choices = [one for number in kind.numbers for one in production(literal(f"${number}"))]
        slots = self._slots.numbers if kind.code else ()
        conditions = [self._slots.has(number, kind.code) for number in slots]
        for number, condition in zip(slots, conditions, strict=True):
            choices += production(literal(f"${number}"), condition=condition)
        made = self._rules.rule(choices)
        if made is None or kind.numbers:
            return made
        return replace(made, needs=frozenset([frozenset([either(conditions)])]))

    def _paths(self, source: GrammarSymbol, chosen: Iterable[ResultPart]) -> Iterator[Production]:
        regexes = dict.fromkeys(place.regex for place in chosen)
        if "" in regexes:
            yield from production(source)
        if behind := "|".join(filter(None, regexes)):
            yield from production(source, self._rules.terminal(behind))


_NULL: Final[JsonSchema] = {"type": "null"}
_ORDERED: Final[tuple[JsonSchema, ...]] = ({"type": "number"}, {"type": "string"})
_PLAIN: Final = "[A-Za-z_][A-Za-z0-9_]{0,99}="
_NOTHING: Final[JsonSchema] = {"enum": []}
_UNDECLARED: Final = "a name that no schema declares"
_MOST_AFTER: Final = 8
"""The most steps that a line waits for with `after`."""


class LineRules:
    """The rules of a line after its number. `ordered`: a call may end with `after $1`."""

    def __init__(
        self,
        rules: GrammarRules,
        references: ReferenceRules,
        items: Sequence[ResultItems],
        limits: GrammarLimits,
        *,
        ordered: bool = False,
    ) -> None:
        self._rules = rules
        self._references = references
        self._after = self._waiting() if ordered else None
        self._items = items
        self._limits = limits
        self._literals = ValueRules(rules, limits, lambda _: None)
        self._alone = ValueRules(rules, limits, references.inside)
        self._mapped = [
            ValueRules(rules, limits, partial(references.inside, item=item)) for item in items
        ]
        self._condition = rules.rule(self._conditions())

    def calls(self, tool: ToolSpec) -> Iterator[tuple[JsonSchema | None, GrammarSymbol]]:
        """Calls of `tool`, alone and as maps, each with the schema of its result."""
        name = literal(tool_name(tool.name))
        parameters = _parameters(tool)
        alone = self._rules.rule(self._perhaps(name, self._arguments(parameters, self._alone)))
        if alone is not None:
            yield tool.result, alone
        choices: list[Production] = []
        for item, values in zip(self._items, self._mapped, strict=True):
            over = self._references.lists(item)
            arguments = self._arguments(parameters, values)
            choices += self._perhaps(name, arguments, literal(" for each "), over)
        mapped = self._rules.rule(choices)
        if mapped is not None:
            yield array_of(tool.result), mapped

    def join(self) -> GrammarSymbol | None:
        """The join of some results, or of none, which means all."""
        ref = self._references.outside()
        named = row(self._rules, "()", (), ref, 0, self._limits.results)
        return self._rules.rule(production(literal(JOIN), named))

    def _perhaps(self, *parts: GrammarSymbol | None) -> Iterator[Production]:
        """`parts`, with and without a condition and an order."""
        for conditional in ((), (literal(" if "), self._condition)):
            yield from production(*parts, *conditional)
            yield from production(*parts, *conditional, self._after)

    def _waiting(self) -> GrammarSymbol | None:
        """` after $1, $2`, or None without earlier steps."""
        step = self._references.whole()
        more = self._rules.rule(production(literal(", "), step))
        if more is None:
            return None
        rest = more.repeated(0, _MOST_AFTER - 1)
        return self._rules.rule(production(literal(" after "), step, rest))

    def _arguments(self, parameters: _CallParameters, values: ValueRules) -> GrammarSymbol | None:
        entries = [
            RecordEntry(
                literal(f"{parameter_name(name)}="), values.of(schema), name in parameters.needed
            )
            for name, schema in parameters.declared.items()
        ]
        free = None
        if parameters.open_to:
            taken = [*parameters.declared, *parameters.impossible]
            spelled = [f"{parameter_name(name)}=" for name in taken]
            name = rf'{_PLAIN}|"{KEY_CHARACTER}{{0,{self._limits.chars}}}"='
            free = RecordEntry(self._rules.terminal(name, spelled), values.of(parameters.other))
        return record(self._rules, "()", entries, free=free, most_free=self._limits.items)

    def _conditions(self) -> Iterator[Production]:
        references = self._references
        anything = references.outside()
        yield from production(anything)
        yield from production(literal("not "), anything)
        for schema in _ORDERED:
            measured = references.outside(partial(fitting, target=schema))
            for operator in ("<", "<=", ">", ">="):
                yield from production(measured, literal(f" {operator} "), self._literals.of(schema))
        yield from production(anything, literal(" != "), self._literals.of(None))
        yield from production(anything, literal(" == "), self._literals.of(_NULL))
        for value, keys in self._compared().items():
            equal = references.outside(partial(_is_one_of, keys))
            yield from production(equal, literal(" == "), value)

    def _compared(self) -> dict[GrammarSymbol, set[str]]:
        """The values that results can be compared with, and the schemas of these results."""
        found: dict[GrammarSymbol, set[str]] = {}
        for schema in self._references.schemas():
            value = self._literals.of(schema)
            if value is not None:
                found.setdefault(value, set()).add(key_of(schema))
        return found


@dataclass(frozen=True, slots=True)
class _CallParameters:
    """The parameters of a call: `other` is the schema of undeclared names."""

    declared: Mapping[str, JsonSchema | None]
    needed: Sequence[str]
    impossible: Sequence[str]
    open_to: bool
    other: JsonSchema | None


def _parameters(tool: ToolSpec) -> _CallParameters:
    declared, needed = dict(parameters_of(tool)), required_by(tool)
    open_to, other = _free(tool)
    stated = tool.parameters.get("properties")
    impossible = [name for name in stated or () if name not in declared]
    for name in needed:
        if name not in declared:
            declared[name] = other if open_to and name not in impossible else _NOTHING
    return _CallParameters(declared, needed, impossible, open_to, other)


def loosened_by(tool: ToolSpec, limits: GrammarLimits) -> Iterator[str]:
    """The constraints on arguments of `tool` that a grammar does not enforce, in words."""
    found: list[str] = []
    values = ValueRules(GrammarRules(), limits, lambda _: None, found.append)
    for name, schema in _parameters(tool).declared.items():
        values.of(schema)
        for what in dict.fromkeys(found):
            yield f"the parameter {name} of {tool.name} is not held to {what}"
        found.clear()


def _free(tool: ToolSpec) -> tuple[bool, JsonSchema | None]:
    """Whether undeclared parameters may be given, and their schema."""
    try:
        return True, parameter_of(tool, _UNDECLARED)
    except LookupError:
        return False, None


def _is_one_of(keys: set[str], places: Iterable[ResultPart]) -> Iterator[ResultPart]:
    return (place for place in places if place.key in keys)
