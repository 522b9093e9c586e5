"""How likely a draft is right, depth by depth, from what was tested there.

Shrunk towards what is known of others like it: what few tests say of one sequence counts little
against many tests of its kind, and more with each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul


class Counts:
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


class Chances:
    """What `counts` say together, the widest group's first; `hope` where all of them are empty.

    Where nothing was tested at a depth, it is thought of as `like` thinks of it, which is somewhat
    alike; or else as of the one above it.
    """

    def __init__(self, counts: Sequence[Counts], hope: float, like: Chances | None = None) -> None:
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
        """See `Counts.add`; all of them learn."""
        if depth < self.depths:
            for counts in self._counts:
                counts.add(depth, held=held)

    def observe(self, drafted: int, accepted: int) -> None:
        """Of a draft `drafted` deep the first `accepted` were right; the one below was tested."""
        for depth in range(min(drafted, accepted + 1)):
            self.test(depth, held=depth < accepted)
