"""What may be written where a schema has to be fitted: literals, and references inside them.

Knows JSON's spelling; which references fit is told by whoever makes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from weft.core.errors import PlanError
from weft.core.schema import mismatch
from weft.core.schema.definitions import standing_alone
from weft.core.schema.keywords import Part, listed, parts, required
from weft.core.values import JsonSchema
from weft.planner.grammar.branches import branches, kinds_of
from weft.planner.grammar.conjunction import Keywords
from weft.planner.grammar.entries import Entry, free_names, record, row
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.rules import Rules, Symbol, Way, literal, way
from weft.planner.grammar.scalars import integer, number, string
from weft.planner.text.writer import write_value

References = Callable[[JsonSchema | None], Symbol | None]
"""What refers to something that may fit a schema; None where nothing does."""

_ANYTHING_DEPTH: Final = 2
_CHOICES: Final = 500


class Values:
    """The values of schemas as rules."""

    def __init__(self, rules: Rules, limits: GrammarLimits, references: References) -> None:
        self._rules = rules
        self._limits = limits
        self.references = references
        self._made: dict[tuple[str, int, int], Symbol | None] = {}

    def of(self, schema: JsonSchema | None) -> Symbol | None:
        """A value of `schema`, in which references may stand anywhere; None where there is none.

        Raises: `CannotHold`.
        """
        whole: JsonSchema = {} if schema is None else schema
        return self._value(whole, whole, self._limits.depth)

    def _value(self, schema: Part, root: JsonSchema, depth: int) -> Symbol | None:
        # Equal schemas mean the same only where the same definitions stand behind them.
        key = (json.dumps(schema, sort_keys=True, default=str), id(root), depth)
        if key not in self._made:
            found: list[Way] = []
            for keywords in branches(schema, root):
                found += self._branch(keywords, root, depth)
            if isinstance(schema, Mapping):
                found += way(self.references(standing_alone(schema, root)))
            self._made[key] = self._rules.rule(found)
        return self._made[key]

    def _branch(self, keywords: Keywords, root: JsonSchema, depth: int) -> Iterator[Way]:
        if listed(keywords) is not None:
            yield from _choices(keywords)
            return
        if "type" not in keywords:
            depth = min(depth, _ANYTHING_DEPTH)
        for kind in kinds_of(keywords):
            yield from self._kind(kind, keywords, root, depth)

    def _kind(self, kind: str, schema: Keywords, root: JsonSchema, depth: int) -> tuple[Way, ...]:
        rules, limits = self._rules, self._limits
        match kind:
            case "string":
                return way(string(rules, schema, limits))
            case "number":
                return way(number(rules, schema, limits))
            case "integer":
                return way(integer(rules, schema, limits))
            case "boolean":
                return (*way(literal("true")), *way(literal("false")))
            case "null":
                return way(literal("null"))
            case "array":
                return way(self._array(schema, root, depth))
            case "object":
                return way(self._object(schema, root, depth))
            case _:
                return ()

    def _array(self, schema: Keywords, root: JsonSchema, depth: int) -> Symbol | None:
        least = int(schema.get("minItems", 0))
        most = max(least, self._limits.items) if depth else 0
        most = min(most, int(schema.get("maxItems", most)))
        places = [*parts(schema.get("prefixItems")), *[schema.get("items", True)] * most][:most]
        items = [self._value(place, root, depth - 1) for place in places]
        return row(self._rules, "[]", items, least) if least <= most else None

    def _object(self, schema: Keywords, root: JsonSchema, depth: int) -> Symbol | None:
        if not depth:
            filled = [*required(schema)] or int(schema.get("minProperties", 0))
            return None if filled else literal("{}")
        declared: Mapping[str, Part] = schema.get("properties") or {}
        free = schema.get("additionalProperties", not declared)
        needed = required(schema)
        entries = [
            Entry(
                literal(f"{write_value(name)}: "),
                self._value(declared.get(name, free), root, depth - 1),
                name in needed,
            )
            for name in dict.fromkeys((*declared, *needed))
        ]
        if free is not False:
            value = self._value(free, root, depth - 1)
            for name in free_names((*declared, *needed)):
                label = self._rules.terminal(f'"{name}": ')
                entries.append(Entry(label, value))
        return self._counted(entries, schema)

    def _counted(self, entries: Iterable[Entry], schema: Keywords) -> Symbol | None:
        """As many of `entries` as the schema allows: optional ones become required, or go."""
        kept = [entry for entry in entries if entry.required or entry.value is not None]
        needed = sum(entry.required for entry in kept)
        least = int(schema.get("minProperties", 0))
        room = int(schema.get("maxProperties", len(kept))) - needed
        if least > len(kept) or room < min(0, least - needed):
            return None
        chosen: list[Entry] = []
        for entry in kept:
            promoted = not entry.required and needed < least > 1
            needed += promoted
            if entry.required or room > 0:
                room -= not entry.required
                chosen.append(replace(entry, required=entry.required or promoted))
        return record(self._rules, "{}", chosen, some=least == 1 and not needed)


def _choices(keywords: Keywords) -> Iterator[Way]:
    """The listed values that fit, as their text."""
    for value in (listed(keywords) or ())[:_CHOICES]:
        if mismatch({"const": value}, keywords) is None:
            yield from _spelt(value)


def _spelt(value: Any) -> tuple[Way, ...]:
    try:
        text = write_value(value)
        text.encode()
    except (PlanError, UnicodeEncodeError):
        return ()  # it is no JSON, so nobody can write it
    return way(literal(text))
