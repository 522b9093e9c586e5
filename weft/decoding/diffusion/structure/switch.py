"""An open choice on the canvas: one slot, whose token tells which way it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.decoding.diffusion.structure.lifted import Lifted
from weft.decoding.diffusion.structure.parts import Parts, Spelt
from weft.decoding.diffusion.structure.slot import OPEN


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One way a choice may go.

    word    the tokens it begins with; of one that adds nothing, those that follow the choice
    rest    what comes after them
    need    tokens it takes at least, `word` included unless `stays`
    head    it begins with a word of this language instead, which gets `room` slots
    stays   it adds nothing
    """

    word: tuple[int, ...]
    rest: Parts
    need: int
    head: Lifted | None = None
    room: int = 0
    stays: bool = False

    def begins(self) -> NDArray[np.int64]:
        """The tokens it may begin with."""
        if self.head is None:
            return np.array(self.word[:1], dtype=np.int64)
        return np.flatnonzero(self.head.begins_within(self.room)[self.head.class_of])


class Switch:
    """Ways whose words differ in their first token, or share it with few others.

    Invariant: the cheapest way takes at most `need` tokens, so a way that takes at most as many
    more as nobody else has claimed can be gone to its end.
    """

    def __init__(self, ways: Sequence[Way], token: int = OPEN) -> None:
        self.ways = tuple(ways)
        self.token = token

    @property
    def tokens(self) -> list[int]:
        return [self.token]

    @property
    def size(self) -> int:
        return 1

    @property
    def need(self) -> int:
        """Slots it keeps from others."""
        return max(1, min(way.need for way in self.ways))

    def allowed(self, slack: int) -> NDArray[np.int64]:
        """The tokens that may be taken, ascending, where `slack` slots are nobody's."""
        return np.unique(np.concatenate([way.begins() for way in self._fitting(slack)]))

    def take(self, token: int, slack: int) -> bool:
        """Go a way that begins with `token`, if there is one; words come before languages."""
        fitting = [way for way in self._fitting(slack) if token in way.begins()]
        words = [way for way in fitting if way.head is None]
        if fitting:
            self.token = token
            self.ways = tuple(words or fitting[:1])
        return bool(fitting)

    def copy(self) -> Switch:
        return Switch(self.ways, self.token)

    def _fitting(self, slack: int) -> list[Way]:
        most = self.need + slack
        return [way for way in self.ways if way.need <= most]


def distinct(ways: Sequence[Way]) -> tuple[Way, ...]:
    """`ways` without those that cannot be told from a cheaper one: its word begins theirs."""
    kept: list[Way] = []
    for way in sorted(ways, key=lambda one: one.need):
        if way.head is not None or not any(_alike(way.word, one.word) for one in kept):
            kept.append(way)
    return tuple(way for way in ways if way in kept)


def shared(ways: Sequence[Way]) -> tuple[int, ...]:
    """The tokens that all words begin with; none where a way has no word."""
    if any(way.head is not None for way in ways):
        return ()
    count = 0
    for column in zip(*(way.word for way in ways), strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return ways[0].word[:count]


def behind(way: Way, tokens: tuple[int, ...], *, again: bool) -> Way:
    """`way` after the tokens that it begins with. `again`: they are written once more behind it,
    since they stand before the choice now and what follows begins with them.
    """
    if not tokens:
        return way
    word = way.word[len(tokens) :]
    if way.stays:
        return Way(word, (), way.need, stays=True)
    rest = (*way.rest, Spelt(tokens)) if again else way.rest
    return Way(word, rest, way.need if again else way.need - len(tokens))


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    shorter = min(len(one), len(other))
    return bool(shorter) and one[:shorter] == other[:shorter]
