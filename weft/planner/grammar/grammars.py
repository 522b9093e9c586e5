"""The grammars of the next line of a plan, and of a whole plan."""

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
    production,
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

    `known` are the schemas of the results that may be referred to, by number. `PlanReader` accepts
    every line of it. Without `calls` there is only the join.
    """
    kinds = kinds_of(known, (), limits)
    ordered = declares_facts(tools)
    lines = _PlanGrammar(kinds, items_of(kinds, limits), number, 0, limits, BITS, ordered)
    choices = [
        one
        for tool in (tools if calls else ())
        for _, call in lines.calls(tool)
        for one in production(literal(f"{number}. "), call, _NEWLINE)
    ]
    return lines.text([*choices, *lines.join(number)])


def plan_grammar(
    tools: Sequence[ToolSpec],
    steps: int,
    known: Known | None = None,
    limits: GrammarLimits = _LIMITS,
    *,
    first: int = 1,
) -> str:
    """The grammar of a whole plan of at most `steps` calls and the join.

    The numbers begin with `first`, which is larger than those of `known`. `PlanReader` accepts
    every plan of it.

    Raises: `ValueError` for more steps than `most_steps` allows.
    """
    plain = [[tool.name, tool.parameters, tool.result] for tool in tools]
    earlier = [[number, schema] for number, schema in (known or {}).items()]
    text = json.dumps([plain, earlier, declares_facts(tools)], default=dict)
    return _plan_grammar(text, steps, limits, first)


@lru_cache(_KEPT)
def _plan_grammar(text: str, steps: int, limits: GrammarLimits, first: int) -> str:
    """`plan_grammar` of tools and results as JSON: most questions have the same tools."""
    plain, earlier, ordered = json.loads(text)
    tools = [ToolSpec(name, "", parameters, result) for name, parameters, result in plain]
    known: dict[int, JsonSchema | None] = dict(earlier)
    kinds = kinds_of(known, _results(tools), limits)
    keys = _keys(tools)
    lines = _PlanGrammar(kinds, items_of(kinds, limits), first, steps, limits, keys, ordered)
    if lines.slots.steps < steps:
        raise ValueError(f"one grammar has room for {lines.slots.steps} steps, not for {steps}")
    calls: dict[int, list[Production]] = {}
    codes = {key_of(kind.schema): kind.code for kind in kinds}
    for tool in tools:
        for result, call in lines.calls(tool):
            calls.setdefault(codes[key_of(result)], []).extend(production(call))
    bodies = {code: lines.rules.rule(choices) for code, choices in calls.items()}
    follows = lines.join(first + steps)
    for number in reversed(lines.slots.numbers):
        after = lines.line(follows)
        follows = lines.join(number)
        for code, body in bodies.items():
            bits = lines.slots.set(number, code)
            start = literal(f"{number}. ")
            follows += production(start, body, _NEWLINE, after and after.with_bits(bits))
    return lines.text(follows)


def declares_facts(tools: Sequence[ToolSpec]) -> bool:
    """Whether a tool declares facts: only then may a step wait for another with `after`."""
    return any(tool.needs or tool.makes for tool in tools)


def most_steps(tools: Sequence[ToolSpec]) -> int:
    """The most steps of a plan for which one grammar can enforce the types of their results.

    The more kinds of results, the fewer.
    """
    bits = len(set(map(key_of, _results(tools)))).bit_length()
    return (BITS - _keys(tools)) // max(1, bits)


def _keys(tools: Sequence[ToolSpec]) -> int:
    """The number of keys of one record that the grammar of a plan tracks."""
    return min(MOST_KEYS, max((_most_keys(tool.parameters) for tool in tools), default=0))


def _most_keys(schema: object) -> int:
    """The most keys that one object in a schema declares."""
    if isinstance(schema, (list, tuple)):
        return max(map(_most_keys, schema), default=0)
    if not isinstance(schema, Mapping):
        return 0
    inner = max(map(_most_keys, schema.values()), default=0)
    names = schema.get("properties")
    own = {*names} if isinstance(names, Mapping) else set()
    return max(inner, len(own.union(map(str, parts(schema.get("required"))))))


def loosened(tools: Sequence[ToolSpec], limits: GrammarLimits = _LIMITS) -> tuple[str, ...]:
    """The constraints that a grammar leaves to the checker and the tools, in words."""
    return tuple(note for tool in tools for note in loosened_by(tool, limits))


def _results(tools: Sequence[ToolSpec]) -> list[JsonSchema | None]:
    """The possible results of the steps of a plan."""
    return [result for tool in tools for result in (tool.result, array_of(tool.result))]


class _PlanGrammar:
    """The rules of one grammar. `steps` of its lines record the kind of their result."""

    def __init__(
        self,
        kinds: Sequence[ResultKind],
        items: Sequence[ResultItems],
        first: int,
        steps: int,
        limits: GrammarLimits,
        keys: int,
        ordered: bool,
    ) -> None:
        self.rules = GrammarRules(keys)
        self.slots = slots_of(kinds, first, steps, keys)
        references = ReferenceRules(self.rules, kinds, self.slots)
        self._lines = LineRules(self.rules, references, items, limits, ordered=ordered)
        self._limits = limits
        self.calls = self._lines.calls

    def join(self, number: int) -> tuple[Production, ...]:
        """The last line, which may end in a newline."""
        start, join = literal(f"{number}. "), self._lines.join()
        return (*production(start, join), *production(start, join, _NEWLINE))

    def line(self, choices: Sequence[Production]) -> GrammarSymbol | None:
        line = self.rules.rule(choices)
        if not self._limits.thought_chars:
            return line
        thought = rf"# [^\x00-\x1f\x7f]{{1,{self._limits.thought_chars}}}\n"
        return self.rules.rule((*production(line), *production(self.rules.terminal(thought), line)))

    def text(self, choices: Sequence[Production]) -> str:
        """The text of the grammar, which begins with such a line."""
        start = self.line(choices)
        assert start is not None, "a join can always be written"
        return self.rules.text(start)
