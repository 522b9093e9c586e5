"""Things with commas between them: items in a row, and named entries that may be left out.

Knows no values and no schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.planner.grammar.rules import Rules, Symbol, Way, literal, way

_COMMA: Final = literal(", ")
# A grammar cannot remember which free names were used. So no two begin with letters of one group,
# and the groups come in this order.
_GROUPS: Final = ("A-Ca-c", "D-Fd-f", "G-Ig-i", "J-Lj-l", "M-Om-o", "P-Rp-r", "S-Us-u", "V-Zv-z")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands before a value, and the value: None where nothing can be written there."""

    label: Symbol
    value: Symbol | None
    required: bool = False


def row(rules: Rules, brackets: str, items: Sequence[Symbol | None], least: int) -> Symbol | None:
    """In brackets, the first of `items`, `least` or more of them; None where that cannot be."""
    opening, closing = map(literal, brackets)
    after: Symbol | None = closing if len(items) >= least else None
    for count in range(len(items) - 1, 0, -1):
        ends = way(closing) if count >= least else ()
        after = rules.rule((*ends, *way(_COMMA, items[count], after)))
    empty = way(opening, closing) if least == 0 else ()
    return rules.rule((*empty, *(way(opening, items[0], after) if items else ())))


def record(
    rules: Rules, brackets: str, entries: Sequence[Entry], *, some: bool = False
) -> Symbol | None:
    """In brackets, `entries` in their order; `some`: at least one. None where that cannot be."""
    opening, closing = map(literal, brackets)
    begun: Symbol | None = closing
    fresh: tuple[Way, ...] = () if some else way(opening, closing)
    for entry in reversed(entries):
        first = way(opening, entry.label, entry.value, begun)
        more = way(_COMMA, entry.label, entry.value, begun)
        fresh = first if entry.required else (*first, *fresh)
        begun = rules.rule(more if entry.required else (*more, *way(begun)))
    return rules.rule(fresh)


def free_names(taken: Iterable[str]) -> Iterator[str]:
    """Regular expressions of names of which each may be used once, in this order.

    None of them begins as one of `taken` does.
    """
    letters = {name[:1].lower() for name in taken}
    for group in _GROUPS:
        if not any(group[0].lower() <= letter <= group[2].lower() for letter in letters):
            yield f"[{group}][A-Za-z0-9_]{{0,29}}"
