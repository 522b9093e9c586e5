"""The children of a node, from what a draft model thinks comes next."""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.law import Shaping

Law = NDArray[np.float64]


class Siblings(Protocol):
    """Chooses the children of nodes, for one sequence."""

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], Law | None]:
        """Up to `count` different tokens in order, of logits [vocabulary of the draft model]; and
        the law [vocabulary of the target] they were drawn from, if they were.
        """


class Largest:
    """Implements `Siblings`: the likeliest tokens, the lowest id of equals first. Draws nothing."""

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], Law | None]:
        del position, node
        if count >= len(logits):
            return np.argsort(-logits, kind="stable").tolist(), None
        border = np.partition(logits, len(logits) - count)[len(logits) - count]
        above = np.flatnonzero(logits > border)
        level = np.flatnonzero(logits == border)[: count - len(above)]
        kept = np.concatenate([above[np.argsort(-logits[above], kind="stable")], level])
        return kept.tolist(), None


class WithoutReplacement:
    """Implements `Siblings`: drawn one after another, each from what the earlier ones leave.

    As a race (Efraimidis and Spirakis, 2006): the token with the weight w arrives after an
    exponential time of rate w, and the first `count` to arrive are such a draw in order. Laws are
    of the target's size `vocabulary`; the numbers come of the request's `seed`, and are not those
    that decide.
    """

    def __init__(self, shaping: Shaping, seed: int, vocabulary: int) -> None:
        self._shaping = shaping
        self._key = blake2b(b"siblings %d" % seed, digest_size=8).digest()
        self._vocabulary = vocabulary

    def choose(
        self, logits: NDArray[np.float32], count: int, position: int, node: int
    ) -> tuple[list[int], Law | None]:
        law = np.zeros(self._vocabulary)
        law[: len(logits)] = self._shaping.law(logits)
        able = np.flatnonzero(law)
        drawn = blake2b(b"%d %d" % (position, node), digest_size=8, key=self._key).digest()
        chance = np.random.default_rng(int.from_bytes(drawn, "little"))
        arrivals = chance.exponential(size=len(able)) / law[able]
        return able[np.argsort(arrivals, kind="stable")[:count]].tolist(), law
