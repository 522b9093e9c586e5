"""How likely drafts are right, depth by depth, by group of requests; kept between processes.

Shrunk towards what is known of others like it: what few tests say of one sequence counts little
against many tests of its kind, and more with each.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Final


class AcceptanceCounts:
    """Tests of each of `depths`, and how many held: about the last `memory` of them.

    `tested` and `held` are [depths]. What was known before counts as `weight` tests.
    """

    def __init__(self, depths: int, *, memory: float, weight: float = 4.0) -> None:
        self.tested = [0.0] * depths
        self.held = [0.0] * depths
        self._weight = weight
        self._keeps = 1.0 - 1.0 / memory

    def chance(self, depth: int, before: float) -> float:
        """That a token there is right; `before` is what was thought without these counts."""
        return (self.held[depth] + self._weight * before) / (self.tested[depth] + self._weight)

    def add(self, depth: int, *, held: bool) -> None:
        """A token at a depth was tested, those above it being right."""
        self.tested[depth] = self.tested[depth] * self._keeps + 1.0
        self.held[depth] = self.held[depth] * self._keeps + held


class AcceptanceRates:
    """What `counts` say together, the widest group's first; `hope` where all of them are empty.

    Where nothing was tested at a depth, it is thought of as `like` thinks of it, which is somewhat
    alike; or else as of the one above it.
    """

    def __init__(
        self, counts: Sequence[AcceptanceCounts], hope: float, like: AcceptanceRates | None = None
    ) -> None:
        self._counts = tuple(counts)
        self._hope = hope
        self._like = like
        self.depths = min(len(each.tested) for each in counts)

    @property
    def tests(self) -> float:
        """Of the first token of a draft, in the widest group."""
        return self._counts[0].tested[0]

    def each(self, depth: int) -> list[float]:
        """Of the first `depth` depths: how likely a token is accepted, those above it being so."""
        found, chance = [], self._hope
        like = None if self._like is None else self._like.each(depth)
        for level in range(min(depth, self.depths)):
            chance = chance if like is None else like[level]
            for counts in self._counts:
                chance = counts.chance(level, chance)
            found.append(chance)
        return found

    def reached(self, depth: int, bonus: float = 0.0) -> list[float]:
        """For each of the first `depth` depths: how likely a draft is right down to there.

        Their sum is what is expected to be accepted of a draft that deep. `bonus` is added to the
        chance of every depth, to think better of it.
        """
        better = (min(chance + bonus, 1.0) for chance in self.each(depth))
        return list(accumulate(better, mul))

    def test(self, depth: int, *, held: bool) -> None:
        """See `AcceptanceCounts.add`; all of them learn."""
        if depth < self.depths:
            for counts in self._counts:
                counts.add(depth, held=held)

    def observe(self, drafted: int, accepted: int) -> None:
        """Of a draft `drafted` deep the first `accepted` were right; the one below was tested."""
        for depth in range(min(drafted, accepted + 1)):
            self.test(depth, held=depth < accepted)


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


class AcceptanceHistory:
    """Counts by key; of more than `groups` the one that was used longest ago is forgotten.

    Not safe from two threads at once.
    """

    def __init__(self, groups: int = 256) -> None:
        self._most = groups
        self._groups: OrderedDict[str, dict[tuple[str, int], AcceptanceCounts]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def chances(self, scopes: Sequence[str], drafter: str) -> tuple[AcceptanceRates, ...]:
        """By warmth, for one sequence of the groups `scopes`, the widest first: what it shows is
        theirs too.

        Of what nobody knows little is hoped: what costs nothing to find out needs no hope. A
        drafter that does better than it did is thought to be as it was, until it shows.
        """
        found: list[AcceptanceRates] = []
        for warm in range(WARMTHS):
            known = [self._of(scope, drafter, warm) for scope in scopes]
            own = AcceptanceCounts(DEPTHS, memory=24.0, weight=6.0)
            found.append(AcceptanceRates((*known, own), _HOPE, found[-1] if found else None))
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

    def _of(self, scope: str, drafter: str, warm: int) -> AcceptanceCounts:
        group = self._groups.setdefault(scope, {})
        self._groups.move_to_end(scope)
        while len(self._groups) > self._most:
            self._groups.popitem(last=False)
        if (drafter, warm) not in group:
            group[drafter, warm] = AcceptanceCounts(DEPTHS, memory=2048.0)
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
