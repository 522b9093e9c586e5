"""What drafters were worth, by group of requests: bounded, and kept from one process to the next.

Knows counts; knows no tokens and no text.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from weft.decoding.speculative.budget.chances import Chances, Counts

DEPTHS: Final = 16
"""As deep as drafts are followed."""
WARMTHS: Final = 3
_FORMAT: Final = 1
_HOPE: Final = 0.1

Key = tuple[str, str, int]
"""A group of requests, a drafter, and how well it did just before."""


def warmth(streak: int) -> int:
    """A class of how many tokens in a row a drafter has just been right about: 0 up to 2."""
    return 0 if streak == 0 else 1 if streak < 4 else 2


class History:
    """Counts by key; of more than `groups` the one that was used longest ago is forgotten.

    Not safe from two threads at once.
    """

    def __init__(self, groups: int = 256) -> None:
        self._most = groups
        self._groups: OrderedDict[str, dict[tuple[str, int], Counts]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def chances(self, scopes: Sequence[str], drafter: str) -> tuple[Chances, ...]:
        """By warmth, for one sequence of the groups `scopes`, the widest first: what it shows is
        theirs too.

        Of what nobody knows little is hoped: what costs nothing to find out needs no hope. A
        drafter that does better than it did is thought to be as it was, until it shows.
        """
        found: list[Chances] = []
        for warm in range(WARMTHS):
            known = [self._of(scope, drafter, warm) for scope in scopes]
            own = Counts(DEPTHS, memory=24.0, weight=6.0)
            found.append(Chances((*known, own), _HOPE, found[-1] if found else None))
        return tuple(found)

    def as_json(self) -> dict[str, object]:
        """A JSON value that `restore` understands."""
        rows = [
            [scope, drafter, warm, _rounded(counts.tested), _rounded(counts.held)]
            for scope, group in self._groups.items()
            for (drafter, warm), counts in group.items()
            if counts.tested[0] > 0.0
        ]
        return {"format": _FORMAT, "depths": DEPTHS, "counts": rows}

    def restore(self, value: object) -> bool:
        """Take over what `as_json` gave, whoever wrote it; whether it is such a value."""
        rows = _parsed(value)
        if rows is None:
            return False
        for (scope, drafter, warm), tested, held in rows:
            counts = self._of(scope, drafter, warm)
            counts.tested, counts.held = tested, held
        return True

    def _of(self, scope: str, drafter: str, warm: int) -> Counts:
        group = self._groups.setdefault(scope, {})
        self._groups.move_to_end(scope)
        while len(self._groups) > self._most:
            self._groups.popitem(last=False)
        if (drafter, warm) not in group:
            group[drafter, warm] = Counts(DEPTHS, memory=2048.0)
        return group[drafter, warm]


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 2) for number in numbers]


def _parsed(value: object) -> list[tuple[Key, list[float], list[float]]] | None:
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        return None
    rows = value.get("counts")
    if value.get("depths") != DEPTHS or not isinstance(rows, list):
        return None
    parsed = [found for row in rows if (found := _row(row)) is not None]
    return parsed if len(parsed) == len(rows) else None


def _row(row: object) -> tuple[Key, list[float], list[float]] | None:
    match row:
        case [str(scope), str(drafter), int(warm), list(tested), list(held)]:
            numbers = [*tested, *held]
            fine = len(tested) == len(held) == DEPTHS and 0 <= warm < WARMTHS
            fine = fine and all(_count(number) for number in numbers)
            if fine and all(h <= t + 0.01 for t, h in zip(tested, held, strict=True)):
                return (scope, drafter, warm), tested, held
    return None


def _count(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return math.isfinite(number) and 0.0 <= number < 1e9
