"""A builder of context-free grammars in llguidance's Lark dialect.

A rule may be parametric: it passes 64 bits to the rules inside it, and a production may have a
condition on them. A production whose beginning can be written, but whose end depends on a false
condition, would trap the model; so its conditions guard its beginning.

The upper bits, one for each key, belong to the innermost record: they mark the keys that are
written. A value inside a record begins with all of them clear.

Constraints of llguidance 1.7: a parametric rule has to use its parameter; no rule may be only
another one with other bits; rules have small letters, terminals capitals. Two parses of the same
text must not give one rule different parameters: llguidance would mix them up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

Needs: TypeAlias = frozenset[frozenset[str]]
"""At least one condition of each group has to hold; no groups: it can always be written."""

ALWAYS: Final[Needs] = frozenset()
BITS: Final = 64
MOST_KEYS: Final = 24
"""The keys of one record that a grammar of a whole plan can track."""
_MOST_GROUPS: Final = 64
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$&~#-]")


@dataclass(frozen=True, slots=True)
class GrammarSymbol:
    """A symbol of a production: quoted text, a rule, or a terminal.

    `bits` are set in its parameter; `kept`, if given, is the mask of the bits that are passed on.
    `times`: the least and greatest number of repetitions. `needs`: the conditions under which it
    can be completed.
    """

    text: str
    parametric: bool = False
    bits: int = 0
    kept: int | None = None
    times: tuple[int, int] | None = None
    needs: Needs = field(default=ALWAYS, compare=False)

    def with_bits(self, bits: int) -> GrammarSymbol:
        """The rule with these bits set in its parameter; itself if it has none."""
        return replace(self, bits=self.bits | bits) if self.parametric else self

    def repeated(self, least: int, most: int) -> GrammarSymbol:
        """The symbol, repeated `least` to `most` times."""
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
    """One production of a rule: its parts in order, if `condition` holds of the parameter.

    `keys`: a condition on the keys of the enclosing record. It can be met later, so no guard needs
    it.
    """

    parts: tuple[GrammarSymbol, ...]
    condition: str = ""
    keys: str = ""

    @property
    def needs(self) -> Needs:
        """The conditions under which it can be completed."""
        own = [frozenset([frozenset([self.condition])])] if self.condition else []
        return ALWAYS.union(*own, *(part.needs for part in self.parts))

    def __str__(self) -> str:
        parts = " ".join(map(str, self.parts)) or '""'
        condition = self.condition or self.keys
        return f"{parts} %if {condition}" if condition else parts


class GrammarRules:
    """Collects rules from the inside out; equal rules are shared.

    `keys`: the number of bits for the keys of a record.
    """

    def __init__(self, keys: int = MOST_KEYS) -> None:
        self.keys = keys
        self._loops: dict[Hashable, GrammarSymbol] = {}
        self._rules: dict[tuple[str, ...], GrammarSymbol] = {}
        self._terminals: dict[str, GrammarSymbol] = {}
        self._guards: dict[tuple[str, ...], GrammarSymbol] = {}

    def rule(self, choices: Iterable[Production]) -> GrammarSymbol | None:
        """A rule with any of these productions; None where there is none."""
        unique = tuple(dict.fromkeys(choices))
        if not unique:
            return None
        one = unique[0]
        if len(unique) == 1 and len(one.parts) == 1 and not (one.condition or one.keys):
            return one.parts[0]
        return self._define(tuple(map(self._guarded, unique)))

    def loop(
        self, key: Hashable, choices: Callable[[GrammarSymbol], Iterable[Production]]
    ) -> GrammarSymbol:
        """A recursive rule, which `choices` receives; equal keys share one rule."""
        if key not in self._loops:
            own = self._loops[key] = GrammarSymbol(f"k{len(self._loops)}", parametric=True)
            self._rules[tuple(map(str, map(self._guarded, choices(own))))] = own
        return self._loops[key]

    def key_bit(self, index: int) -> int:
        """The bit that marks key `index` of a record as written."""
        return BITS - self.keys + index

    def inside(self, value: GrammarSymbol) -> GrammarSymbol:
        """`value` inside a record: its parameter lacks the bits of the record's keys."""
        kept = (1 << (BITS - self.keys)) - 1
        return replace(value, kept=kept) if value.parametric else value

    def terminal(self, regex: str, but: Sequence[str] = ()) -> GrammarSymbol:
        """A terminal for a regular expression of Rust's regex, anchored, except for `but`."""
        body = f"/{_delimited(regex)}/"
        if but:
            body += f" & ~/{_delimited('|'.join(map(escaped, but)))}/"
        if body not in self._terminals:
            self._terminals[body] = GrammarSymbol(f"T{len(self._terminals)}")
        return self._terminals[body]

    def text(self, start: GrammarSymbol) -> str:
        """The text of the grammar from `start`. Its first line excludes other dialects."""
        first = f"start: {start.text}::{start.bits:#x}" if start.parametric else f"start: {start}"
        lines = ["%llguidance {}", first]
        for body, symbol in self._rules.items():
            name = f"{symbol.text}::_" if symbol.parametric else symbol.text
            lines.append(f"{name}: " + "\n  | ".join(body))
        for regex, symbol in self._terminals.items():
            lines.append(f"{symbol.text}: {regex}")
        return "\n".join(lines) + "\n"

    def _define(self, choices: Sequence[Production]) -> GrammarSymbol:
        body = tuple(map(str, choices))
        if body not in self._rules:
            parametric = any(
                one.condition or one.keys or any(p.parametric for p in one.parts) for one in choices
            )
            name = f"r{len(self._rules)}"
            self._rules[body] = GrammarSymbol(
                name, parametric, needs=_any([one.needs for one in choices])
            )
        return self._rules[body]

    def _guarded(self, choice: Production) -> Production:
        """`choice`, guarded by the conditions of its end. The first part has its own guards."""
        groups = ALWAYS.union(*(part.needs for part in choice.parts[1:]))
        if not groups:
            return choice
        guards = [self._guard(group) for group in sorted(map(sorted, groups))]
        return replace(choice, parts=(*guards, *choice.parts))

    def _guard(self, group: Sequence[str]) -> GrammarSymbol:
        """The empty text, if one of these conditions holds."""
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
    """One production, or none where a part is None."""
    known = tuple(part for part in parts if part is not None)
    return (Production(known, condition, keys),) if len(known) == len(parts) else ()


def either(conditions: Sequence[str]) -> str:
    """The condition that one of `conditions`, of which there is at least one, holds."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return f"or({either(conditions[:half])}, {either(conditions[half:])})"


def _any(choices: Sequence[Needs]) -> Needs:
    """The needs of a choice of productions; shortened to the first ones where they are many."""
    if ALWAYS in choices:
        return ALWAYS
    found = choices[0]
    for needs in choices[1:]:
        both = frozenset(one | other for one, other in product(found, needs))
        found = both if len(both) <= _MOST_GROUPS else found
    return found


def escaped(text: str) -> str:
    """A regular expression that matches exactly `text`."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)


def _delimited(regex: str) -> str:
    """`regex` between slashes."""
    return regex.replace("/", "\\/").replace("\n", "\\n")
