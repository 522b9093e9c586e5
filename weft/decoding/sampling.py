"""Token distributions of logits, and the counter-based random numbers that draw from them.

A number depends on where it is used, not on how often: drafts never change the number that decides
at a position, so text with drafts equals text without.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from struct import pack
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_HEAD = 512  # most nuclei are narrower: no need to sort the whole vocabulary


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling of a token: temperature, then min-p, then top-k, then top-p. `temperature` 0 is
    greedy; `min_p` 0 and `top_k` 0 keep all.

    Raises: `ValueError` for a value out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        cuts = self.top_k >= 0 and 0.0 < self.top_p <= 1.0 and 0.0 <= self.min_p <= 1.0
        if not self.temperature >= 0.0 or not cuts:
            raise ValueError(f"no sampling with {self}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always chosen."""
        return self.temperature == 0.0

    def distribution(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities [vocabulary] of logits [vocabulary], of which some may be -inf.

        Greedy: 1 for the largest, the lowest id of equals. Of equals at the boundary of top-k or
        top-p the lower ids stay.
        """
        if self.greedy:
            certain = np.zeros(len(logits))
            certain[logits.argmax()] = 1.0
            return certain
        weights: NDArray[np.float64] = np.exp(
            (logits.astype(np.float64) - logits.max()) / self.temperature
        )
        if self.min_p:
            weights[weights < self.min_p] = 0.0  # the likeliest token weighs 1
        if self.top_k or self.top_p < 1.0:
            weights = self._cut(weights)
        weights /= weights.sum()
        return weights

    def _cut(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        order = _heaviest(weights, self.top_k or _HEAD)
        enough = self.top_p * (weights[order] if self.top_k else weights).sum()
        if weights[order].sum() < enough:  # a nucleus wider than the head
            order = _heaviest(weights, len(weights))
        order = order[: int(np.searchsorted(weights[order].cumsum(), enough)) + 1]
        cut = np.zeros_like(weights)
        cut[order] = weights[order]
        return cut


def _heaviest(weights: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The indices of the `count` largest weights, largest first, ties by index."""
    if count >= len(weights):
        return np.argsort(-weights, kind="stable")
    border = np.partition(weights, len(weights) - count)[len(weights) - count]
    above = np.flatnonzero(weights > border)
    at = np.flatnonzero(weights == border)[: count - len(above)]
    head = np.sort(np.concatenate([above, at]))
    return head[np.argsort(-weights[head], kind="stable")]


class TokenRng(Protocol):
    """Random decisions at positions of one sequence."""

    def token(self, distribution: NDArray[np.float64], position: int) -> int:
        """A token of `distribution` [vocabulary] for `position`: equal for equal distributions."""

    def accepts(self, probability: float, position: int, sibling: int) -> bool:
        """True with `probability`, for the candidate `sibling` at `position`."""


class CounterRng:
    """Random numbers from a seed: one for each position, and for each candidate at it."""

    def __init__(self, seed: int) -> None:
        self._key = (seed % 2**64).to_bytes(8, "little")

    def token(self, distribution: NDArray[np.float64], position: int) -> int:
        """Inverse transform sampling, ids ascending."""
        likeliest = int(distribution.argmax())
        if distribution[likeliest] == 1.0:
            return likeliest
        running = distribution.cumsum()
        token = np.searchsorted(running, self.number(position) * running[-1], side="right")
        # rounding may carry the draw past the last id that has any weight
        return min(int(token), int(np.searchsorted(running, running[-1])))

    def accepts(self, probability: float, position: int, sibling: int) -> bool:
        return self._number(position, 1 + sibling) < probability

    def number(self, position: int) -> float:
        """The number in [0, 1) that decides the token at `position`."""
        return self._number(position, 0)

    def _number(self, position: int, purpose: int) -> float:
        """A number in [0, 1) of 53 bits."""
        digest = blake2b(pack("<QQ", position, purpose), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53
