"""Comma-separated sequences: items in a row, and named entries in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.planner.grammar.rules import (
    ALWAYS,
    GrammarRules,
    GrammarSymbol,
    Production,
    literal,
    production,
)

_COMMA: Final = literal(", ")


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """A label and a value: None where no value can be written."""

    label: GrammarSymbol
    value: GrammarSymbol | None
    required: bool = False


def row(
    rules: GrammarRules,
    brackets: str,
    first: Sequence[GrammarSymbol | None],
    rest: GrammarSymbol | None,
    least: int,
    most: int,
) -> GrammarSymbol | None:
    """In brackets, `least` to `most` items: the `first` ones, and then further ones like `rest`.

    None where that is impossible.
    """
    if None in first:
        rest, first = None, first[: first.index(None)]
    first = first[:most]
    most = most if rest is not None else len(first)
    if least > most:
        return None
    opening, closing = map(literal, brackets)
    after = _rest(rules, closing, len(first), rest, least, most)
    for count in range(len(first) - 1, 0, -1):
        ends = production(closing) if count >= least else ()
        after = rules.rule((*ends, *production(_COMMA, first[count], after)))
    empty = production(opening, closing) if least == 0 else ()
    head = first[0] if first else rest
    return rules.rule((*empty, *(production(opening, head, after) if most else ())))


def _rest(
    rules: GrammarRules,
    closing: GrammarSymbol,
    before: int,
    rest: GrammarSymbol | None,
    least: int,
    most: int,
) -> GrammarSymbol | None:
    """The rule after `before` items, or after one where there are none."""
    before = max(1, before)
    more = rules.rule(production(_COMMA, rest))
    if more is None or most <= before:
        return closing
    return rules.rule(production(more.repeated(max(0, least - before), most - before), closing))


def record(
    rules: GrammarRules,
    brackets: str,
    entries: Sequence[RecordEntry],
    *,
    free: RecordEntry | None = None,
    least: int = 0,
    most: int | None = None,
    most_free: int = 0,
) -> GrammarSymbol | None:
    """In brackets, `entries` in any order, each once; None where that is impossible.

    `free`: up to `most_free` further entries between them, whose labels are not tracked: one may be
    repeated. At least `least` and at most `most` of `entries`. Where there are more of them than
    the rules can track, the last optional ones may be repeated as well.
    """
    if any(entry.required and entry.value is None for entry in entries):
        return None
    kept = [entry for entry in entries if entry.value is not None]
    kept.sort(key=lambda entry: not entry.required)
    if free is not None and free.value is None:
        free = None
    made = _RecordRules(rules, brackets, kept, free, most_free)
    return made.symbol(least, len(kept) if most is None else most)


class _RecordRules:
    def __init__(
        self,
        rules: GrammarRules,
        brackets: str,
        entries: Sequence[RecordEntry],
        free: RecordEntry | None,
        most_free: int,
    ) -> None:
        self._rules = rules
        self._brackets = brackets
        self._opening, self._closing = map(literal, brackets)
        self._apart, self._others = entries[: rules.keys], entries[rules.keys :]
        self._free = free
        self._most_free = most_free
        self._required = sum(entry.required for entry in self._apart)

    def symbol(self, least: int, most: int) -> GrammarSymbol | None:
        if self._required > most:
            return None
        empty = production(self._opening, self._closing) if not max(self._required, least) else ()
        if not self._apart:
            return self._only_free(empty, least)
        if len(self._apart) == 1 and self._free is None and not self._others:
            only = self._apart[0]
            return self._rules.rule(
                (*empty, *production(self._opening, *_pair(only), self._closing))
            )
        least = self._countable(least)
        after = self._rules.loop(
            (self._brackets, *self._apart, "-", *self._others, self._free, least, most),
            lambda own: self._following(own, least, most),
        )
        choices = [*empty]
        for entry, bit in self._numbered():
            choices += production(self._opening, *self._inside(entry), after.with_bits(1 << bit))
        for entry in self._repeatable():
            choices += production(self._opening, *self._inside(entry), after)
        made = self._rules.rule(choices)
        values = [entry.value for entry in self._apart if entry.required]
        needs = ALWAYS.union(*(value.needs for value in values if value is not None))
        return None if made is None else replace(made, needs=needs)

    def _only_free(self, empty: tuple[Production, ...], least: int) -> GrammarSymbol | None:
        """The rule without tracked entries."""
        pairs = [_pair(entry) for entry in self._repeatable()]
        one = self._rules.rule([each for pair in pairs for each in production(*pair)])
        if one is None:
            return self._rules.rule(empty)
        more = self._rules.rule(production(_COMMA, one))
        assert more is not None, "there is something to write"
        most = max(self._most_free, len(self._others))
        tail = more.repeated(max(0, min(least, most) - 1), most - 1)
        return self._rules.rule((*empty, *production(self._opening, one, tail, self._closing)))

    def _countable(self, least: int) -> int:
        """`least`, where so many entries can always be written and are tracked."""
        always = [entry for entry in self._apart if entry.value and not entry.value.needs]
        uncounted = self._others or self._free is not None or len(always) < least
        return self._required if uncounted else max(least, self._required)

    def _following(self, own: GrammarSymbol, least: int, most: int) -> Iterator[Production]:
        """The productions after an entry."""
        begin: tuple[GrammarSymbol, ...] = ()
        if self._free is not None and self._most_free:
            more = self._rules.rule(production(_COMMA, *self._inside(self._free)))
            assert more is not None, "it has a value"
            begin = (more.repeated(0, self._most_free),)
        yield from production(*begin, self._closing, keys=self._enough(least))
        for entry, bit in self._numbered():
            keys = f"bit_clear({bit})"
            if most < len(self._apart):
                keys = f"and({keys}, bit_count_lt({self._bits()}, {most}))"
            after = own.with_bits(1 << bit)
            yield from production(*begin, _COMMA, *self._inside(entry), after, keys=keys)
        for entry in self._others:
            yield from production(*begin, _COMMA, *self._inside(entry), own)

    def _enough(self, least: int) -> str:
        """The condition that all required entries, and `least` in total, are written."""
        conditions = []
        if self._required:
            start = self._rules.key_bit(0)
            conditions.append(f"is_ones([{start}:{start + self._required}])")
        if least > self._required:
            conditions.append(f"bit_count_ge({self._bits()}, {least})")
        return f"and({', '.join(conditions)})" if len(conditions) > 1 else "".join(conditions)

    def _bits(self) -> str:
        return f"[{self._rules.key_bit(0)}:{self._rules.key_bit(len(self._apart))}]"

    def _numbered(self) -> Iterator[tuple[RecordEntry, int]]:
        for index, entry in enumerate(self._apart):
            yield entry, self._rules.key_bit(index)

    def _repeatable(self) -> Iterator[RecordEntry]:
        yield from self._others
        if self._free is not None and self._most_free:
            yield self._free

    def _inside(self, entry: RecordEntry) -> tuple[GrammarSymbol, GrammarSymbol]:
        label, value = _pair(entry)
        return label, self._rules.inside(value)


def _pair(entry: RecordEntry) -> tuple[GrammarSymbol, GrammarSymbol]:
    assert entry.value is not None, "entries without a value are left out"
    return entry.label, entry.value
