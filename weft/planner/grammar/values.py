"""Rules for values of a schema: literals, and references inside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from weft.core.errors import PlanError
from weft.core.schema import mismatch, references
from weft.core.schema.keywords import Part, listed, parts, required
from weft.core.schema.lookup import standing_alone
from weft.core.values import JsonSchema
from weft.planner.grammar.alternatives import Keywords, branches, kinds_of
from weft.planner.grammar.entries import RecordEntry, record, row
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.rules import GrammarRules, GrammarSymbol, Production, literal, production
from weft.planner.grammar.scalars import KEY_CHARACTER, Loosened, integer, number, string
from weft.planner.text.writer import write_value

ReferenceMaker = Callable[[JsonSchema | None], GrammarSymbol | None]
"""The rule of references that may fit a schema; None where there are none."""

_CHOICES: Final = 2_000


def _quietly(_: str) -> None:
    """Ignores the notice."""


class ValueRules:
    """The values of schemas as rules. `loosened` receives what they leave to the checker."""

    def __init__(
        self,
        rules: GrammarRules,
        limits: GrammarLimits,
        references: ReferenceMaker,
        loosened: Loosened = _quietly,
    ) -> None:
        self._rules = rules
        self._limits = limits
        self.references = references
        self._loosened = loosened
        self._made: dict[tuple[str, int, int], GrammarSymbol | None] = {}

    def of(self, schema: JsonSchema | None) -> GrammarSymbol | None:
        """A value of `schema`, which may contain references; None where there is none."""
        whole: JsonSchema = {} if schema is None else schema
        return self._value(whole, whole, self._limits.depth)

    def _value(self, schema: Part, root: JsonSchema, depth: int) -> GrammarSymbol | None:
        if schema is True:
            schema = {}  # allows a reference too
        # Equal schemas mean the same only with the same definitions.
        behind = id(root) if any(references(schema)) else 0
        key = (json.dumps(schema, sort_keys=True, default=str), behind, depth)
        if key not in self._made:
            found: list[Production] = []
            for keywords in branches(schema, root, self._loosened):
                found += self._branch(keywords, root, depth)
            if isinstance(schema, Mapping):
                found += production(self.references(standing_alone(schema, root)))
            self._made[key] = self._rules.rule(found)
        return self._made[key]

    def _branch(self, keywords: Keywords, root: JsonSchema, depth: int) -> Iterator[Production]:
        values = listed(keywords)
        if values is not None and len(values) <= _CHOICES:
            for value in values:
                if mismatch({"const": value}, keywords) is None:
                    yield from self._constant(value, depth)
            return
        if values is not None:
            self._loosened(f"an 'enum' of more than {_CHOICES:,} values")
        for kind in kinds_of(keywords):
            yield from self._kind(kind, keywords, root, depth)

    def _kind(
        self, kind: str, schema: Keywords, root: JsonSchema, depth: int
    ) -> tuple[Production, ...]:
        rules, limits, loosened = self._rules, self._limits, self._loosened
        match kind:
            case "string":
                return production(string(rules, schema, limits, loosened))
            case "number":
                return number(rules, schema, limits, loosened)
            case "integer":
                return integer(rules, schema, limits, loosened)
            case "boolean":
                return (*production(literal("true")), *production(literal("false")))
            case "null":
                return production(literal("null"))
            case "array" if depth:
                return production(self._array(schema, root, depth))
            case "object" if depth:
                return production(self._object(schema, root, depth))
            case _:
                return ()

    def _constant(self, value: Any, depth: int) -> tuple[Production, ...]:
        """One value: an object with its keys in any order, a number in both spellings."""
        if isinstance(value, Mapping):
            members = {name: {"const": one} for name, one in value.items()}
            closed = {"required": list(members), "additionalProperties": False}
            return self._kind("object", {"properties": members, **closed}, {}, depth)
        if isinstance(value, (list, tuple)):
            fixed = {"minItems": len(value), "maxItems": len(value)}
            items = [{"const": one} for one in value]
            return self._kind("array", {"prefixItems": items, **fixed}, {}, depth)
        same = _other_spelling(value)
        return (*_spelled(value), *(_spelled(same) if same is not None else ()))

    def _array(self, schema: Keywords, root: JsonSchema, depth: int) -> GrammarSymbol | None:
        least = int(schema.get("minItems", 0))
        most = max(least, self._limits.items)
        most = min(most, int(schema.get("maxItems", most)))
        places = list(parts(schema.get("prefixItems")))[:most]
        first = [self._value(place, root, depth - 1) for place in places]
        rest = schema.get("items", True)
        item = None if rest is False else self._value(rest, root, depth - 1)
        return row(self._rules, "[]", first, item, least, most)

    def _object(self, schema: Keywords, root: JsonSchema, depth: int) -> GrammarSymbol | None:
        declared: Mapping[str, Part] = schema.get("properties") or {}
        needed = required(schema)
        names = tuple(dict.fromkeys((*declared, *needed)))
        other = schema.get("additionalProperties", True)
        entries = [
            RecordEntry(
                literal(f"{write_value(name)}: "),
                self._value(declared.get(name, other), root, depth - 1),
                name in needed,
            )
            for name in names
        ]
        most = schema.get("maxProperties")
        return record(
            self._rules,
            "{}",
            entries,
            free=None if other is False else self._free(names, other, root, depth),
            least=int(schema.get("minProperties", 0)),
            most=None if most is None else int(most),
            most_free=self._limits.items if most is None else int(most),
        )

    def _free(
        self, names: tuple[str, ...], other: Part, root: JsonSchema, depth: int
    ) -> RecordEntry:
        spelled = [f"{write_value(name)}: " for name in names]
        key = f'"{KEY_CHARACTER}{{0,{self._limits.chars}}}": '
        return RecordEntry(self._rules.terminal(key, spelled), self._value(other, root, depth - 1))


def _other_spelling(value: Any) -> int | float | None:
    """Another spelling of the number `value`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return None


def _spelled(value: Any) -> tuple[Production, ...]:
    try:
        text = write_value(value)
        text.encode()
    except (PlanError, UnicodeEncodeError):
        return ()  # not JSON, so no model can write it
    return production(literal(text))
