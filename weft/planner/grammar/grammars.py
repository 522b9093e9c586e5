"""The grammars of the next line of a plan, and of a whole plan. Knows no model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from weft.core.schema import array_of
from weft.core.schema.keywords import parts
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.grammar.limits import GrammarLimits
from weft.planner.grammar.lines import LineRules, ReferenceRules, loosened_by
from weft.planner.grammar.results import (
    ResultItems,
    ResultKind,
    items_of,
    key_of,
    kinds_of,
    slots_of,
)
from weft.planner.grammar.rules import (
    BITS,
    MOST_KEYS,
    GrammarRules,
    GrammarSymbol,
    Production,
    literal,
    way,
)

Known = Mapping[int, JsonSchema | None]
_KEPT: Final = 32
_LIMITS: Final = GrammarLimits()
_NEWLINE: Final = literal("\n")


def step_grammar(
    tools: Sequence[ToolSpec],
    known: Known,
    number: int,
    limits: GrammarLimits = _LIMITS,
    *,
    calls: bool = True,
) -> str:
    """The grammar of line `number`: one call with its newline, or the join.

    `known` are the schemas of the results that may be referred to, by number. Whatever is written
    by it, `PlanReader` takes. Without `calls` there is only the join.
    """
    kinds = kinds_of(known, (), limits)
    lines = _PlanGrammar(kinds, items_of(kinds, limits), number, 0, limits, BITS)
    ways = [
        one
        for tool in (tools if calls else ())
        for _, call in lines.calls(tool)
        for one in way(literal(f"{number}. "), call, _NEWLINE)
    ]
    return lines.text([*ways, *lines.join(number)])


def plan_grammar(
    tools: Sequence[ToolSpec],
    steps: int,
    known: Known | None = None,
    limits: GrammarLimits = _LIMITS,
    *,
    first: int = 1,
) -> str:
    """The grammar of a whole plan of at most `steps` calls and the join.

    The numbers begin with `first`, which is larger than those of `known`. Whatever is written by
    it, `PlanReader` takes.

    Raises: `ValueError` for more steps than `most_steps` says.
    """
    plain = [[tool.name, tool.parameters, tool.result] for tool in tools]
    earlier = [[number, schema] for number, schema in (known or {}).items()]
    text = json.dumps([plain, earlier], default=dict)
    return _plan_grammar(text, steps, limits, first)


@lru_cache(_KEPT)
def _plan_grammar(text: str, steps: int, limits: GrammarLimits, first: int) -> str:
    """The same, of tools and results as JSON: most questions are asked of the same tools."""
    plain, earlier = json.loads(text)
    tools = [ToolSpec(name, "", parameters, result) for name, parameters, result in plain]
    known: dict[int, JsonSchema | None] = dict(earlier)
    kinds = kinds_of(known, _results(tools), limits)
    lines = _PlanGrammar(kinds, items_of(kinds, limits), first, steps, limits, _keys(tools))
    if lines.slots.steps < steps:
        raise ValueError(f"one grammar has room for {lines.slots.steps} steps, not for {steps}")
    calls: dict[int, list[Production]] = {}
    codes = {key_of(kind.schema): kind.code for kind in kinds}
    for tool in tools:
        for result, call in lines.calls(tool):
            calls.setdefault(codes[key_of(result)], []).extend(way(call))
    bodies = {code: lines.rules.rule(ways) for code, ways in calls.items()}
    follows = lines.join(first + steps)
    for number in reversed(lines.slots.numbers):
        after = lines.line(follows)
        follows = lines.join(number)
        for code, body in bodies.items():
            bits = lines.slots.set(number, code)
            start = literal(f"{number}. ")
            follows += way(start, body, _NEWLINE, after and after.with_bits(bits))
    return lines.text(follows)


def most_steps(tools: Sequence[ToolSpec]) -> int:
    """How many steps a plan may have so that one grammar holds it to the types of their results:
    the fewer, the more kinds of results there are.
    """
    bits = len(set(map(key_of, _results(tools)))).bit_length()
    return (BITS - _keys(tools)) // max(1, bits)


def _keys(tools: Sequence[ToolSpec]) -> int:
    """How many keys of one record the grammar of a plan keeps apart."""
    return min(MOST_KEYS, max((_most_keys(tool.parameters) for tool in tools), default=0))


def _most_keys(schema: object) -> int:
    """The most keys that one object in a schema can have, as far as they are declared."""
    if isinstance(schema, (list, tuple)):
        return max(map(_most_keys, schema), default=0)
    if not isinstance(schema, Mapping):
        return 0
    inner = max(map(_most_keys, schema.values()), default=0)
    names = schema.get("properties")
    own = {*names} if isinstance(names, Mapping) else set()
    return max(inner, len(own.union(map(str, parts(schema.get("required"))))))


def loosened(tools: Sequence[ToolSpec], limits: GrammarLimits = _LIMITS) -> tuple[str, ...]:
    """What a grammar leaves to the checker and the tools, in words: `'not'`, for example."""
    return tuple(told for tool in tools for told in loosened_by(tool, limits))


def _results(tools: Sequence[ToolSpec]) -> list[JsonSchema | None]:
    """What the steps of a plan can return."""
    return [result for tool in tools for result in (tool.result, array_of(tool.result))]


class _PlanGrammar:
    """The rules of one grammar. `steps` of its lines keep what kind of result they have."""

    def __init__(
        self,
        kinds: Sequence[ResultKind],
        items: Sequence[ResultItems],
        first: int,
        steps: int,
        limits: GrammarLimits,
        keys: int,
    ) -> None:
        self.rules = GrammarRules(keys)
        self.slots = slots_of(kinds, first, steps, keys)
        self._lines = LineRules(
            self.rules, ReferenceRules(self.rules, kinds, self.slots), items, limits
        )
        self._limits = limits
        self.calls = self._lines.calls

    def join(self, number: int) -> tuple[Production, ...]:
        """The last line, which may end in a newline, as that of a file does."""
        start, join = literal(f"{number}. "), self._lines.join()
        return (*way(start, join), *way(start, join, _NEWLINE))

    def line(self, ways: Sequence[Production]) -> GrammarSymbol | None:
        line = self.rules.rule(ways)
        if not self._limits.thought_chars:
            return line
        thought = rf"# [^\x00-\x1f\x7f]{{1,{self._limits.thought_chars}}}\n"
        return self.rules.rule((*way(line), *way(self.rules.terminal(thought), line)))

    def text(self, ways: Sequence[Production]) -> str:
        """The grammar that begins with such a line."""
        start = self.line(ways)
        assert start is not None, "a join can always be written"
        return self.rules.text(start)
