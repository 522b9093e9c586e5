"""Which token a draft model's logits become: the likeliest, or one that is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.decoding.speculative.chance import Keyed
from weft.decoding.speculative.law import Shaping

Law = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A token, how probable the draft model finds it, and the law it was drawn from, if it was.

    stamp: the pass it came of, on the timeline. runner_up: the next likeliest token, and how
    probable that is; only known of tokens that were not drawn.
    """

    token: int
    confidence: float
    law: Law | None = None
    stamp: int = -1
    runner_up: tuple[int, float] = (-1, 0.0)


class Choice(Protocol):
    """Chooses for one sequence."""

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> Chosen:
        """Of logits [vocabulary], for a position of the sequence."""


class Likeliest:
    """Implements `Choice`: the largest logit, the lowest id of equals. Draws nothing."""

    def choose(self, logits: NDArray[np.float32], _position: int, stamp: int) -> Chosen:
        weights = np.exp(logits.astype(np.float64) - logits.max())
        token = int(weights.argmax())
        total = weights.sum()
        confidence = 1.0 / total
        weights[token] = -1.0
        second = int(weights.argmax())
        return Chosen(
            token,
            float(confidence),
            None,
            stamp,
            (second, max(0.0, float(weights[second] / total))),
        )


class Drawn:
    """Implements `Choice`: a draw of the shaped law, which the ratio test needs to know.

    Laws are of the target's size `vocabulary`. The numbers come of the request's `seed` and differ
    from those that decide, as the test demands.
    """

    def __init__(self, shaping: Shaping, seed: int, vocabulary: int) -> None:
        self._shaping = shaping
        own = blake2b(b"draft %d" % seed, digest_size=8).digest()
        self._chance = Keyed(int.from_bytes(own, "little"))
        self._vocabulary = vocabulary

    def choose(self, logits: NDArray[np.float32], position: int, stamp: int) -> Chosen:
        law = np.zeros(self._vocabulary)
        law[: len(logits)] = self._shaping.law(logits)
        token = self._chance.token(law, position)
        return Chosen(token, float(law[token]), law, stamp)
