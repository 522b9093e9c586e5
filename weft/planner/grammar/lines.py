"""The lines of a plan as rules: calls, maps, conditions, and the join.

Knows nothing of numbers: which references may be written is told by whoever makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.core.errors import BuildError
from weft.core.schema import array_of, mismatch
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.grammar.conjunction import CannotHold
from weft.planner.grammar.entries import Entry, free_names, record, row
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.places import Place, key_of
from weft.planner.grammar.references import References
from weft.planner.grammar.results import Item
from weft.planner.grammar.rules import Rules, Symbol, Way, literal, way
from weft.planner.grammar.values import Values
from weft.planner.signature import parameter_of, parameters_of, required_by
from weft.planner.text.lines import JOIN
from weft.planner.text.writer import parameter_name, tool_name

_SCALAR: Final[JsonSchema] = {"type": ["string", "number", "boolean"]}
_NUMBER: Final[JsonSchema] = {"type": "number"}
_COMPOSITES: Final[tuple[JsonSchema, ...]] = ({"type": "array"}, {"type": "object"})
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
        """Calls of `tool`, by themselves and as maps, each with the schema of its result.

        A map is one only where the item or its index can be used.

        Raises: `BuildError` for a parameter that no grammar can hold a model to.
        """
        name = literal(tool_name(tool.name))
        parameters = list(_parameters(tool))
        arguments = self._arguments(parameters, self._alone)
        alone = self._rules.rule(self._perhaps(name, arguments))
        if alone is not None:
            yield tool.result, alone
        ways: list[Way] = []
        for item, values in zip(self._items, self._mapped, strict=True):
            inner = self._arguments(parameters, values)
            if inner != arguments:
                over = self._references.lists(item)
                ways += self._perhaps(name, inner, literal(" for each "), over)
        mapped = self._rules.rule(ways)
        if mapped is not None:
            yield array_of(tool.result), mapped

    def join(self) -> Symbol | None:
        """The join of some results; of none, which stands for all."""
        ref = self._references.outside()
        named = row(self._rules, "()", [ref] * self._limits.results, 0)
        return self._rules.rule(way(literal(JOIN), named))

    def _perhaps(self, *parts: Symbol | None) -> Iterator[Way]:
        """`parts`, and the same under a condition."""
        yield from way(*parts)
        yield from way(*parts, literal(" if "), self._condition)

    def _arguments(self, parameters: Sequence[_Parameter], values: Values) -> Symbol | None:
        entries = []
        for one in parameters:
            label = literal(one.label) if one.declared else self._rules.terminal(one.label)
            entries.append(Entry(label, _argument(one, values), one.required))
        return record(self._rules, "()", entries)

    def _conditions(self) -> Iterator[Way]:
        references = self._references
        anything = references.outside()
        yield from way(anything)
        yield from way(literal("not "), anything)
        number = self._literals.of(_NUMBER)
        measured = references.outside(lambda place: mismatch(place.schema, _NUMBER) is None)
        for operator in ("<", "<=", ">", ">="):
            yield from way(measured, literal(f" {operator} "), number)
        for value, keys in self._compared().items():
            equal = references.outside(partial(_is_one_of, keys))
            for operator in ("==", "!="):
                yield from way(equal, literal(f" {operator} "), value)

    def _compared(self) -> dict[Symbol, set[str]]:
        """What results can be compared with, and the schemas of those that can."""
        found: dict[Symbol, set[str]] = {}
        for schema in self._references.schemas():
            if schema is not None and any(mismatch(schema, one) is None for one in _COMPOSITES):
                continue
            try:
                value = self._literals.of(_SCALAR if schema is None else schema)
            except CannotHold:
                continue
            if value is not None:
                found.setdefault(value, set()).add(key_of(schema))
        return found


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One that a call may give; `label` is a regular expression where its name is free."""

    tool: str
    name: str
    label: str
    schema: JsonSchema | None
    required: bool = False
    possible: bool = True
    declared: bool = True


def _parameters(tool: ToolSpec) -> Iterator[_Parameter]:
    declared, required = parameters_of(tool), required_by(tool)
    names = tuple(dict.fromkeys((*declared, *required)))
    open_to, free = _free(tool)
    for name in names:
        label = f"{parameter_name(name)}="
        schema, possible = declared.get(name, free), name in declared or open_to
        yield _Parameter(tool.name, name, label, schema, name in required, possible)
    for regex in free_names(names) if open_to else ():
        yield _Parameter(tool.name, "of any name", f"{regex}=", free, declared=False)


def _free(tool: ToolSpec) -> tuple[bool, JsonSchema | None]:
    """Whether parameters may be given that are not declared, and their schema."""
    try:
        return True, parameter_of(tool, _UNDECLARED)
    except LookupError:
        return False, None


def _argument(parameter: _Parameter, values: Values) -> Symbol | None:
    """A value of the parameter; of an optional one, perhaps only references."""
    if not parameter.possible:
        return None
    try:
        return values.of(parameter.schema)
    except CannotHold as error:
        if not parameter.required:
            return values.references(parameter.schema)
        raise BuildError(
            f"no grammar can hold the parameter {parameter.name} of the tool {parameter.tool}"
            f" to {error}",
            hint="say it with type, enum, bounds or a plain pattern; constrain='never' leaves plans"
            " to the checker",
        ) from None


def _is_one_of(keys: set[str], place: Place) -> bool:
    return key_of(place.schema) in keys
