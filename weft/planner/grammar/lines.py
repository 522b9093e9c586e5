"""The lines of a plan as rules: calls, maps, conditions, and the join.

Knows nothing of numbers: which references may be written is told by whoever makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.core.schema import array_of
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.grammar.entries import Entry, record, row
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.places import Place, fitting, key_of
from weft.planner.grammar.references import References
from weft.planner.grammar.results import Item
from weft.planner.grammar.rules import Rules, Symbol, Way, literal, way
from weft.planner.grammar.scalars import KEY_CHARACTER
from weft.planner.grammar.values import Values
from weft.planner.signature import parameter_of, parameters_of, required_by
from weft.planner.text.lines import JOIN
from weft.planner.text.writer import parameter_name, tool_name

_NULL: Final[JsonSchema] = {"type": "null"}
_ORDERED: Final[tuple[JsonSchema, ...]] = ({"type": "number"}, {"type": "string"})
_PLAIN: Final = "[A-Za-z_][A-Za-z0-9_]{0,99}="
_NOTHING: Final[JsonSchema] = {"enum": []}
_UNDECLARED: Final = "a name that no schema declares"


class Lines:
    """What a line may hold behind its number."""

    def __init__(
        self,
        rules: Rules,
        references: References,
        items: Sequence[Item],
        limits: GrammarLimits,
    ) -> None:
        self._rules = rules
        self._references = references
        self._items = items
        self._limits = limits
        self._literals = Values(rules, limits, lambda _: None)
        self._alone = Values(rules, limits, references.inside)
        self._mapped = [
            Values(rules, limits, partial(references.inside, item=item)) for item in items
        ]
        self._condition = rules.rule(self._conditions())

    def calls(self, tool: ToolSpec) -> Iterator[tuple[JsonSchema | None, Symbol]]:
        """Calls of `tool`, by themselves and as maps, each with the schema of its result."""
        name = literal(tool_name(tool.name))
        parameters = _parameters(tool)
        alone = self._rules.rule(self._perhaps(name, self._arguments(parameters, self._alone)))
        if alone is not None:
            yield tool.result, alone
        ways: list[Way] = []
        for item, values in zip(self._items, self._mapped, strict=True):
            over = self._references.lists(item)
            arguments = self._arguments(parameters, values)
            ways += self._perhaps(name, arguments, literal(" for each "), over)
        mapped = self._rules.rule(ways)
        if mapped is not None:
            yield array_of(tool.result), mapped

    def join(self) -> Symbol | None:
        """The join of some results; of none, which stands for all."""
        ref = self._references.outside()
        named = row(self._rules, "()", (), ref, 0, self._limits.results)
        return self._rules.rule(way(literal(JOIN), named))

    def _perhaps(self, *parts: Symbol | None) -> Iterator[Way]:
        """`parts`, and the same under a condition."""
        yield from way(*parts)
        yield from way(*parts, literal(" if "), self._condition)

    def _arguments(self, parameters: _Parameters, values: Values) -> Symbol | None:
        entries = [
            Entry(literal(f"{parameter_name(name)}="), values.of(schema), name in parameters.needed)
            for name, schema in parameters.declared.items()
        ]
        free = None
        if parameters.open_to:
            taken = [*parameters.declared, *parameters.impossible]
            spelled = [f"{parameter_name(name)}=" for name in taken]
            name = rf'{_PLAIN}|"{KEY_CHARACTER}{{0,{self._limits.chars}}}"='
            free = Entry(self._rules.terminal(name, spelled), values.of(parameters.other))
        return record(self._rules, "()", entries, free=free, most_free=self._limits.items)

    def _conditions(self) -> Iterator[Way]:
        references = self._references
        anything = references.outside()
        yield from way(anything)
        yield from way(literal("not "), anything)
        for schema in _ORDERED:
            measured = references.outside(partial(fitting, target=schema))
            for operator in ("<", "<=", ">", ">="):
                yield from way(measured, literal(f" {operator} "), self._literals.of(schema))
        yield from way(anything, literal(" != "), self._literals.of(None))
        yield from way(anything, literal(" == "), self._literals.of(_NULL))
        for value, keys in self._compared().items():
            equal = references.outside(partial(_is_one_of, keys))
            yield from way(equal, literal(" == "), value)

    def _compared(self) -> dict[Symbol, set[str]]:
        """What results can be compared with, and the schemas of those that can."""
        found: dict[Symbol, set[str]] = {}
        for schema in self._references.schemas():
            value = self._literals.of(schema)
            if value is not None:
                found.setdefault(value, set()).add(key_of(schema))
        return found


@dataclass(frozen=True, slots=True)
class _Parameters:
    """Those that a call may give: `other` is the schema of names that are not declared."""

    declared: Mapping[str, JsonSchema | None]
    needed: Sequence[str]
    impossible: Sequence[str]
    open_to: bool
    other: JsonSchema | None


def _parameters(tool: ToolSpec) -> _Parameters:
    declared, needed = dict(parameters_of(tool)), required_by(tool)
    open_to, other = _free(tool)
    stated = tool.parameters.get("properties")
    impossible = [name for name in stated or () if name not in declared]
    for name in needed:
        if name not in declared:
            declared[name] = other if open_to and name not in impossible else _NOTHING
    return _Parameters(declared, needed, impossible, open_to, other)


def loosened_by(tool: ToolSpec, limits: GrammarLimits) -> Iterator[str]:
    """What a grammar does not hold the arguments of `tool` to, in words."""
    found: list[str] = []
    values = Values(Rules(), limits, lambda _: None, found.append)
    for name, schema in _parameters(tool).declared.items():
        values.of(schema)
        for what in dict.fromkeys(found):
            yield f"the parameter {name} of {tool.name} is not held to {what}"
        found.clear()


def _free(tool: ToolSpec) -> tuple[bool, JsonSchema | None]:
    """Whether parameters may be given that are not declared, and their schema."""
    try:
        return True, parameter_of(tool, _UNDECLARED)
    except LookupError:
        return False, None


def _is_one_of(keys: set[str], places: Iterable[Place]) -> Iterator[Place]:
    return (place for place in places if place.key in keys)
