"""Drafters that know the text, and are right about it as often as they are told to be."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from weft.core.ports.clock import FakeClock
from weft.decoding.speculative.draft import DraftProposal, DraftTree
from weft.decoding.speculative.drafter import (
    PerSequenceMethod,
    ProposalRequest,
    propose_each,
)
from weft.decoding.speculative.pass_costs import PassCosts

PROMPT = (1, 2, 3)
CPU = PassCosts({64: {1: 0.030, 2: 0.036, 4: 0.045, 8: 0.066, 16: 0.105, 64: 0.40}})
"""About a 135M model in fp32 on one core."""


def text(seed: int, tokens: int) -> list[int]:
    source = random.Random(seed)
    return [source.randrange(50) for _ in range(tokens)]


class Knowing:
    """Implements `Drafter`: each token of its drafts is the text's with the chance `at` its place.

    Whether it is right about a place is decided once, so two drafts say the same of it.
    """

    def __init__(
        self, name: str, whole: Sequence[int], at: Callable[[int], float], seed: int
    ) -> None:
        self.name = name
        source = random.Random(seed)
        right = [source.random() < at(place) for place in range(len(whole))]
        self._says = [token if ok else token + 1 for token, ok in zip(whole, right, strict=True)]
        self._at = -len(PROMPT)

    def extend(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def propose(self, most: int) -> DraftTree:
        return DraftTree.chain(self._says[self._at : self._at + most])


class Slow(PerSequenceMethod):
    """Drafts that take `level_s` a level on a clock, whoever is asked."""

    def __init__(
        self, name: str, drafter: Callable[[], Knowing], clock: FakeClock, level_s: float
    ) -> None:
        super().__init__(name, drafter, 8)
        self.asked = 0
        self._clock = clock
        self._level_s = level_s

    def propose(self, asks: Sequence[ProposalRequest]) -> Sequence[DraftProposal | BaseException]:
        drafts = propose_each(asks)
        for draft in drafts:
            assert isinstance(draft, DraftProposal)
            self.asked += 1
            self._clock.advance(self._level_s * max(draft.tree.depths.max(), 1))
        return drafts
