"""Drawing one token from one row of logits. Plain numpy, so that no thread pool is woken.

A row's draws depend on its own logits and its own seed, never on the rows beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_HEAD = 512
_GREEDY_BELOW = 1e-5


class Sampler:
    """Temperature, then top-k, then top-p (nucleus), then one draw.

    `temperature` 0, or next to it, is greedy; `top_k` 0 and `top_p` 1 keep every token; `seed` None
    is different each time.
    """

    def __init__(self, temperature: float, top_p: float, top_k: int, seed: int | None) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._top_k = top_k
        self._random = np.random.default_rng(None if seed is None else seed % 2**64)

    def choose(self, logits: NDArray[np.float32]) -> int:
        """One token id. logits: [vocabulary], -inf where a token is forbidden."""
        if self._temperature < _GREEDY_BELOW:
            return int(logits.argmax())
        scaled = (logits - logits.max()) / self._temperature
        weights = np.exp(scaled, dtype=np.float32)
        if self._top_k == 0 and self._top_p >= 1.0:
            return self._draw(weights)
        kept = self._keep(weights)
        return int(kept[self._draw(weights[kept])])

    def _keep(self, weights: NDArray[np.float32]) -> NDArray[np.intp]:
        """The ids that top-k and top-p leave, heaviest first, ties by id."""
        kept = _heaviest(weights, self._top_k or _HEAD)
        total = (weights[kept] if self._top_k else weights).sum(dtype=np.float64)
        enough = self._top_p * total
        if weights[kept].sum(dtype=np.float64) < enough:  # a nucleus wider than the head
            kept = _heaviest(weights, len(weights))
        running = weights[kept].cumsum(dtype=np.float64)
        return kept[: int(np.searchsorted(running, enough)) + 1]

    def _draw(self, weights: NDArray[np.float32]) -> int:
        """An index with probability in proportion to its weight."""
        running = weights.cumsum(dtype=np.float64)
        drawn = np.searchsorted(running, self._random.random() * running[-1], side="right")
        # rounding may carry the draw past the last index that has any weight
        return min(int(drawn), int(np.searchsorted(running, running[-1])))


def _heaviest(weights: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The indices of the `count` largest weights, largest first, ties by index."""
    if count >= len(weights):
        return np.argsort(-weights, kind="stable")
    border = np.partition(weights, len(weights) - count)[len(weights) - count]
    above = np.flatnonzero(weights > border)
    at = np.flatnonzero(weights == border)[: count - len(above)]
    kept = np.sort(np.concatenate([above, at]))
    return kept[np.argsort(-weights[kept], kind="stable")]
