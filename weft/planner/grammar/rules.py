"""A context-free grammar under construction, and its text in llguidance's Lark dialect.

Knows how rules are spelt, shared and parametrised; knows nothing of plans.

A rule may be parametric: it hands 64 bits on to the rules inside it, and a way to write it may have
a condition on them. What begins with a text and cannot be ended, because a condition behind it does
not hold, would lead a model into a trap; so such a way is guarded from its beginning.

The upper bits, as many as there are keys, belong to the innermost record: which of its keys are
written. A value inside a record begins with none of them set.

Traits of llguidance 1.7 that are respected here: a parametric rule has to need its parameter; no
rule is just another one with other bits; rules have small letters, terminals capitals. Two ways to
read the same text must not give one rule different parameters: it would mix them up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

Needs: TypeAlias = frozenset[frozenset[str]]
"""Of each group of conditions at least one has to hold; no groups: it can always be written."""

ALWAYS: Final[Needs] = frozenset()
BITS: Final = 64
MOST_KEYS: Final = 24
"""Keys of one record that a grammar of a whole plan keeps apart."""
_MOST_GROUPS: Final = 64
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$&~#-]")


@dataclass(frozen=True, slots=True)
class GrammarSymbol:
    """What may stand in a rule: spelt text, a rule, or a terminal.

    `bits` are set in the parameter that it gets, or where `kept` is given, only those are kept.
    `times`: it is written so often, at least and at most. `needs` says when there is a way to end
    it.
    """

    text: str
    parametric: bool = False
    bits: int = 0
    kept: int | None = None
    times: tuple[int, int] | None = None
    needs: Needs = field(default=ALWAYS, compare=False)

    def with_bits(self, bits: int) -> GrammarSymbol:
        """The rule with these bits set in its parameter; itself where it has none."""
        return replace(self, bits=self.bits | bits) if self.parametric else self

    def repeated(self, least: int, most: int) -> GrammarSymbol:
        """The same, written `least` to `most` times."""
        return replace(self, times=(least, most), needs=self.needs if least else ALWAYS)

    def __str__(self) -> str:
        text = self.text
        if self.parametric:
            text += f"::{self._parameter()}"
        return f"({text}){{{self.times[0]},{self.times[1]}}}" if self.times else text

    def _parameter(self) -> str:
        if self.kept is not None:
            return f"bit_and({self.kept:#x})"
        return f"bit_or({self.bits:#x})" if self.bits else "_"


@dataclass(frozen=True, slots=True)
class Production:
    """One way to write a rule: its parts in order, where `condition` holds of the parameter.

    And where `keys` holds: a condition on the keys of the record that it belongs to. Such a one can
    be met in time, so nothing needs it.
    """

    parts: tuple[GrammarSymbol, ...]
    condition: str = ""
    keys: str = ""

    @property
    def needs(self) -> Needs:
        """When it can be written to its end."""
        own = [frozenset([frozenset([self.condition])])] if self.condition else []
        return ALWAYS.union(*own, *(part.needs for part in self.parts))

    def __str__(self) -> str:
        parts = " ".join(map(str, self.parts)) or '""'
        condition = self.condition or self.keys
        return f"{parts} %if {condition}" if condition else parts


class GrammarRules:
    """Rules are made from the inside out, and equal ones are one.

    `keys`: how many bits are left for the keys of a record.
    """

    def __init__(self, keys: int = MOST_KEYS) -> None:
        self.keys = keys
        self._loops: dict[Hashable, GrammarSymbol] = {}
        self._rules: dict[tuple[str, ...], GrammarSymbol] = {}
        self._terminals: dict[str, GrammarSymbol] = {}
        self._guards: dict[tuple[str, ...], GrammarSymbol] = {}

    def rule(self, ways: Iterable[Production]) -> GrammarSymbol | None:
        """What may be written in any of these ways; None where there is none."""
        kept = tuple(dict.fromkeys(ways))
        if not kept:
            return None
        if len(kept) == 1 and len(kept[0].parts) == 1 and not (kept[0].condition or kept[0].keys):
            return kept[0].parts[0]
        return self._define(tuple(map(self._guarded, kept)))

    def loop(
        self, key: Hashable, ways: Callable[[GrammarSymbol], Iterable[Production]]
    ) -> GrammarSymbol:
        """A rule that has itself inside, which `ways` gets; for equal keys it is the same."""
        if key not in self._loops:
            own = self._loops[key] = GrammarSymbol(f"k{len(self._loops)}", parametric=True)
            self._rules[tuple(map(str, map(self._guarded, ways(own))))] = own
        return self._loops[key]

    def key_bit(self, index: int) -> int:
        """The number of the bit that says whether key `index` of a record is written."""
        return BITS - self.keys + index

    def inside(self, value: GrammarSymbol) -> GrammarSymbol:
        """`value` inside a record: of what came before, it knows all but the record's keys."""
        kept = (1 << (BITS - self.keys)) - 1
        return replace(value, kept=kept) if value.parametric else value

    def terminal(self, regex: str, but: Sequence[str] = ()) -> GrammarSymbol:
        """What matches a regular expression in the syntax of Rust's regex, from end to end.

        None of the texts `but`.
        """
        body = f"/{_delimited(regex)}/"
        if but:
            body += f" & ~/{_delimited('|'.join(map(escaped, but)))}/"
        if body not in self._terminals:
            self._terminals[body] = GrammarSymbol(f"T{len(self._terminals)}")
        return self._terminals[body]

    def text(self, start: GrammarSymbol) -> str:
        """The grammar of what `start` stands for. By its first line no other dialect takes it."""
        first = f"start: {start.text}::{start.bits:#x}" if start.parametric else f"start: {start}"
        lines = ["%llguidance {}", first]
        for body, symbol in self._rules.items():
            name = f"{symbol.text}::_" if symbol.parametric else symbol.text
            lines.append(f"{name}: " + "\n  | ".join(body))
        for regex, symbol in self._terminals.items():
            lines.append(f"{symbol.text}: {regex}")
        return "\n".join(lines) + "\n"

    def _define(self, ways: Sequence[Production]) -> GrammarSymbol:
        body = tuple(map(str, ways))
        if body not in self._rules:
            parametric = any(
                way.condition or way.keys or any(p.parametric for p in way.parts) for way in ways
            )
            name = f"r{len(self._rules)}"
            self._rules[body] = GrammarSymbol(
                name, parametric, needs=_any([way.needs for way in ways])
            )
        return self._rules[body]

    def _guarded(self, way: Production) -> Production:
        """`way`, begun only where it can be ended. Its first part takes care of itself."""
        groups = ALWAYS.union(*(part.needs for part in way.parts[1:]))
        if not groups:
            return way
        guards = [self._guard(group) for group in sorted(map(sorted, groups))]
        return replace(way, parts=(*guards, *way.parts))

    def _guard(self, group: Sequence[str]) -> GrammarSymbol:
        """The empty text, where one of these conditions holds."""
        key = tuple(group)
        if key not in self._guards:
            empty = [self._define([Production((), condition)]) for condition in group]
            one = (
                empty[0]
                if len(empty) == 1
                else self._define([Production((each,)) for each in empty])
            )
            self._guards[key] = one
        return self._guards[key]


def literal(text: str) -> GrammarSymbol:
    """Exactly `text`, which is not empty."""
    return GrammarSymbol(json.dumps(text))


def production(
    *parts: GrammarSymbol | None, condition: str = "", keys: str = ""
) -> tuple[Production, ...]:
    """One way, or none where a part cannot be written at all."""
    known = tuple(part for part in parts if part is not None)
    return (Production(known, condition, keys),) if len(known) == len(parts) else ()


def either(conditions: Sequence[str]) -> str:
    """The condition that one of `conditions` holds; there is at least one."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return f"or({either(conditions[:half])}, {either(conditions[half:])})"


def _any(ways: Sequence[Needs]) -> Needs:
    """What has to hold so that one of several ways is open; where that is long, the first ones."""
    if ALWAYS in ways:
        return ALWAYS
    found = ways[0]
    for needs in ways[1:]:
        both = frozenset(one | other for one, other in product(found, needs))
        found = both if len(both) <= _MOST_GROUPS else found
    return found


def escaped(text: str) -> str:
    """A regular expression that matches `text` and nothing else."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _delimited(regex: str) -> str:
    """`regex` as it may stand between slashes."""
    return regex.replace("/", "\\/").replace("\n", "\\n")
