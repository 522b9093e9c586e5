"""The chance that decides: numbers that depend on where they are used, not on how often.

A draft never changes the number that decides at a position: text with drafts equals text without.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import pack
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Chance(Protocol):
    """Decides at positions of one sequence."""

    def token(self, law: NDArray[np.float64], position: int) -> int:
        """One token of `law` [vocabulary], for `position`; always the same for the same law."""

    def accepts(self, probability: float, position: int, sibling: int) -> bool:
        """True with `probability`, for the candidate `sibling` at `position`."""


class Keyed:
    """Chance from a seed: one number for each position, and for each candidate at it."""

    def __init__(self, seed: int) -> None:
        self._key = (seed % 2**64).to_bytes(8, "little")

    def token(self, law: NDArray[np.float64], position: int) -> int:
        """By the inverse of the distribution function, ids ascending."""
        likeliest = int(law.argmax())
        if law[likeliest] == 1.0:
            return likeliest
        running = law.cumsum()
        drawn = np.searchsorted(running, self._number(position, 0) * running[-1], side="right")
        # rounding may carry the draw past the last id that has any weight
        return min(int(drawn), int(np.searchsorted(running, running[-1])))

    def accepts(self, probability: float, position: int, sibling: int) -> bool:
        return self._number(position, 1 + sibling) < probability

    def _number(self, position: int, purpose: int) -> float:
        """In [0, 1), 53 bits."""
        digest = blake2b(pack("<QQ", position, purpose), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53
