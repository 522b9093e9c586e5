"""How sure a model was of its tokens (DeepConf, arXiv 2508.15260). Knows no text and no answer.

The confidence of a token is the negative mean of its `k` largest log probabilities: a peaked
distribution leaves little for all but one, so a higher value is more certain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import exp, fsum

TOP_LOGPROBS = 20
"""How many log probabilities of a token the published measure reads."""


def token_confidence(top_logprobs: Sequence[float]) -> float:
    """-(1/k) sum_j log p_j over the `top_logprobs` of one token.

    Values of minus infinity, which servers give for tokens that are ruled out, are left out.
    """
    finite = [value for value in top_logprobs if value > float("-inf")]
    return -fsum(finite) / len(finite) if finite else 0.0


def proxy_confidence(logprob: float) -> float:
    """A stand-in where a server gives no top-k: the probability of the sampled token.

    Like the published measure it is larger for peaked distributions and never below 0, but its
    scale is another: thresholds do not carry over from one to the other.
    """
    return exp(min(0.0, logprob))


class Confidences:
    """The confidences of one sample's tokens as they come, in windows of `window` tokens."""

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1 token, got {window}")
        self._window: deque[float] = deque(maxlen=window)
        self._sum = 0.0
        self._groups: list[float] = []
        self._count = 0
        self._lowest: float | None = None

    def add(self, confidence: float) -> None:
        """One more token."""
        if len(self._window) == self._window.maxlen:
            self._sum -= self._window[0]
        self._window.append(confidence)
        self._sum += confidence
        self._count += 1
        if len(self._window) == self._window.maxlen:
            mean = self._sum / len(self._window)
            self._groups.append(mean)
            if self._lowest is None or mean < self._lowest:
                self._lowest = mean

    @property
    def tokens(self) -> int:
        """How many tokens came."""
        return self._count

    @property
    def lowest(self) -> float | None:
        """The least mean of any full window; None: none is full yet."""
        return self._lowest

    @property
    def lowest_of_all(self) -> float | None:
        """`lowest`, or the mean of a sample that is shorter than a window; None: no token."""
        return self.lowest if self._groups else self.tail

    @property
    def tail(self) -> float | None:
        """The mean of the last `window` tokens, or of as many as there are."""
        return fsum(self._window) / len(self._window) if self._window else None

    def bottom(self, share: float = 0.1) -> float | None:
        """The mean of the lowest `share` of all windows; of all tokens when none is full."""
        if not self._groups:
            return self.tail
        count = max(1, int(len(self._groups) * share))
        return fsum(sorted(self._groups)[:count]) / count
