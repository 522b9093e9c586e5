"""Acceptance rates of drafts by depth and group of requests, kept between processes.

Rates shrink towards those of the wider group: few tests of one sequence count little against many
of its group, and more with each test.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Final


class AcceptanceCounts:
    """Tests at each of `depths` and how many succeeded: about the last `memory` of them.

    `tested` and `accepted` are [depths]. The prior counts as `weight` tests.
    """

    def __init__(self, depths: int, *, memory: float, weight: float = 4.0) -> None:
        self.tested = [0.0] * depths
        self.accepted = [0.0] * depths
        self._weight = weight
        self._decay = 1.0 - 1.0 / memory

    def chance(self, depth: int, before: float) -> float:
        """The rate at which tokens there are right; `before` is the prior."""
        return (self.accepted[depth] + self._weight * before) / (self.tested[depth] + self._weight)

    def add(self, depth: int, *, accepted: bool) -> None:
        """Count a test of a token at `depth`, all above it being right."""
        self.tested[depth] = self.tested[depth] * self._decay + 1.0
        self.accepted[depth] = self.accepted[depth] * self._decay + accepted


class AcceptanceRates:
    """The rates of all `counts`, the widest group first; `hope` where all of them are empty.

    The prior at a depth is the rate of `like`, a similar drafter state, or else that of the depth
    above.
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
        """Tests of the first token of a draft, in the widest group."""
        return self._counts[0].tested[0]

    def each(self, depth: int) -> list[float]:
        """The rates of the first `depth` depths: of a token, all above it being accepted."""
        rates, chance = [], self._hope
        like = None if self._like is None else self._like.each(depth)
        for level in range(min(depth, self.depths)):
            chance = chance if like is None else like[level]
            for counts in self._counts:
                chance = counts.chance(level, chance)
            rates.append(chance)
        return rates

    def reached(self, depth: int, bonus: float = 0.0) -> list[float]:
        """For each of the first `depth` depths: how likely a draft is right down to there.

        Their sum is the expected number of accepted tokens. `bonus` is added to every rate.
        """
        better = (min(chance + bonus, 1.0) for chance in self.each(depth))
        return list(accumulate(better, mul))

    def test(self, depth: int, *, accepted: bool) -> None:
        """See `AcceptanceCounts.add`; for all groups."""
        if depth < self.depths:
            for counts in self._counts:
                counts.add(depth, accepted=accepted)

    def observe(self, drafted: int, accepted: int) -> None:
        """Count a draft `drafted` deep, of which the first `accepted` tokens were right."""
        for depth in range(min(drafted, accepted + 1)):
            self.test(depth, accepted=depth < accepted)


DEPTHS: Final = 16
"""The greatest depth that is counted."""
WARMTHS: Final = 3
_FORMAT: Final = 1
_HOPE: Final = 0.1

Key = tuple[str, str, int]
"""A group of requests, a drafter, and its warmth."""


def warmth(streak: int) -> int:
    """A class of how many tokens in a row a drafter was right about: 0 to 2."""
    return 0 if streak == 0 else 1 if streak < 4 else 2


class AcceptanceHistory:
    """Counts by key, of the `groups` used last. Not thread-safe."""

    def __init__(self, groups: int = 256) -> None:
        self._most = groups
        self._groups: OrderedDict[str, dict[tuple[str, int], AcceptanceCounts]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def chances(self, scopes: Sequence[str], drafter: str) -> tuple[AcceptanceRates, ...]:
        """The rates by warmth for one sequence of the groups `scopes`, the widest first, which it
        also updates.

        The prior of an unknown drafter is low; that of a warmer class is the rate of the one below.
        """
        rates: list[AcceptanceRates] = []
        for warm in range(WARMTHS):
            groups = [self._of(scope, drafter, warm) for scope in scopes]
            own = AcceptanceCounts(DEPTHS, memory=24.0, weight=6.0)
            rates.append(AcceptanceRates((*groups, own), _HOPE, rates[-1] if rates else None))
        return tuple(rates)

    def as_json(self) -> dict[str, object]:
        """A JSON value for `restore`."""
        rows = [
            [scope, drafter, warm, _rounded(counts.tested), _rounded(counts.accepted)]
            for scope, group in self._groups.items()
            for (drafter, warm), counts in group.items()
            if counts.tested[0] > 0.0
        ]
        return {"format": _FORMAT, "depths": DEPTHS, "counts": rows}

    def restore(self, value: object) -> bool:
        """Load a value of `as_json` from any process; false for other values."""
        rows = _parsed(value)
        if rows is None:
            return False
        for (scope, drafter, warm), tested, accepted in rows:
            counts = self._of(scope, drafter, warm)
            counts.tested, counts.accepted = tested, accepted
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
    parsed = [entry for row in rows if (entry := _row(row)) is not None]
    return parsed if len(parsed) == len(rows) else None


def _row(row: object) -> tuple[Key, list[float], list[float]] | None:
    match row:
        case [str(scope), str(drafter), int(warm), list(tested), list(accepted)]:
            numbers = [*tested, *accepted]
            fine = len(tested) == len(accepted) == DEPTHS and 0 <= warm < WARMTHS
            fine = fine and all(_count(number) for number in numbers)
            if fine and all(h <= t + 0.01 for t, h in zip(tested, accepted, strict=True)):
                return (scope, drafter, warm), tested, accepted
    return None


def _count(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return math.isfinite(number) and 0.0 <= number < 1e9
