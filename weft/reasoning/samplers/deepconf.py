"""DeepConf online (arXiv 2508.15260): cancels samples whose confidence falls too low.

The confidence of a token is the negative mean of its `k` largest log probabilities: a peaked
distribution leaves little for all but one, so a higher value is more certain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, fsum

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision, SampleState
from weft.reasoning.selection.vote import Vote, count_votes

TOP_LOGPROBS = 20
"""The number of log probabilities per token of the published measure."""


def token_confidence(top_logprobs: Sequence[float]) -> float:
    """-(1/k) sum_j log p_j over the `top_logprobs` of one token.

    Values of minus infinity, which servers give for forbidden tokens, are ignored.
    """
    finite = [value for value in top_logprobs if value > float("-inf")]
    return -fsum(finite) / len(finite) if finite else 0.0


def proxy_confidence(logprob: float) -> float:
    """A substitute where a server gives no top-k: the probability of the sampled token.

    Like the published measure it is larger for peaked distributions and never below 0, but its
    scale differs: thresholds do not carry over.
    """
    return exp(min(0.0, logprob))


class ConfidenceWindows:
    """The confidences of one sample's tokens, in sliding windows of `window` tokens."""

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"window must be at least 1 token, got {window}")
        self._window: deque[float] = deque(maxlen=window)
        self._sum = 0.0
        self._groups: list[float] = []
        self._count = 0
        self._lowest: float | None = None

    def add(self, confidence: float) -> None:
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
        return self._count

    @property
    def lowest(self) -> float | None:
        """The lowest mean of a full window; None: none is full yet."""
        return self._lowest

    @property
    def lowest_of_all(self) -> float | None:
        """`lowest`, or the mean of a sample shorter than a window; None: no token."""
        return self.lowest if self._groups else self.tail

    @property
    def tail(self) -> float | None:
        """The mean of the last `window` tokens, or of all if fewer."""
        return fsum(self._window) / len(self._window) if self._window else None

    def bottom(self, share: float = 0.1) -> float | None:
        """The mean of the lowest `share` of windows; of all tokens when none is full."""
        if not self._groups:
            return self.tail
        count = max(1, int(len(self._groups) * share))
        return fsum(sorted(self._groups)[:count]) / count


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of `values` lie, linearly interpolated."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(slots=True)
class DeepConfSampler:
    """`warmup` samples set the bar; later ones are cancelled when a window falls below it.

    `keep`: the percentage of the warm-up above the bar, as published 10 for few tokens or 90 to be
    safe; 10 needs a warm-up of 16 or more, since few samples may agree by chance. `window`: tokens
    in a confidence window. A vote's weight is the sample's lowest confidence; samples below the bar
    have no vote. Stops once the winner has `consensus` of all weight, or after `limit` samples.
    """

    limit: int = 64
    warmup: int = 16
    keep: float = 90.0
    window: int = 2048
    consensus: float = 0.95
    probe_tokens: None = None
    _bar: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.warmup <= self.limit:
            raise ValueError(f"warmup must be from 1 to limit {self.limit}, got {self.warmup}")
        if not 0 < self.keep <= 100:
            raise ValueError(f"keep is a percentage above 0, got {self.keep}")
        if not 0.5 < self.consensus <= 1:
            raise ValueError(f"consensus must be above 0.5 and at most 1, got {self.consensus}")
        if self.window < 1:
            raise ValueError(f"window must be at least 1 token, got {self.window}")

    @property
    def confidence(self) -> int:
        """The window of `SampleState.lowest_confidence`, in tokens."""
        return self.window

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Warm up, set the bar, start the rest, cancel what falls below it."""
        if not pool.branches:
            return SamplerDecision(start=self.warmup)
        if self._bar is None:
            return self._after_warmup(pool)
        below = tuple(b.index for b in pool.running if not self._clears(b))
        rest = [b for b in pool.running if b.index not in below]
        agreed = self._agreed(pool)
        if agreed or not rest:
            return self._stop(pool, agreed or f"all {len(pool.branches)} samples have ended")
        if below:
            why = f"a window's confidence fell below {self._bar:.3f}"
            return SamplerDecision(cancel=below, why=why)
        return GO_ON

    def _after_warmup(self, pool: SamplePool) -> SamplerDecision:
        if pool.running:
            return GO_ON
        known = [b.lowest_confidence for b in pool.ended if b.lowest_confidence is not None]
        self._bar = percentile(known, 100 - self.keep) if known else 0.0
        agreed = self._agreed(pool)
        if agreed or self.limit == self.warmup:
            return self._stop(pool, agreed or f"all {self.limit} samples have ended")
        return SamplerDecision(start=self.limit - self.warmup)

    def _clears(self, branch: SampleState) -> bool:
        lowest = branch.lowest_confidence
        return lowest is None or lowest >= (self._bar or 0.0)

    def _voters(self, pool: SamplePool) -> dict[int, Vote]:
        return {
            b.index: Vote(b.index, b.key, b.tokens, b.lowest_confidence or 0.0)
            for b in pool.ended
            if b.key is not None and self._clears(b)
        }

    def _agreed(self, pool: SamplePool) -> str:
        tallies = count_votes(self._voters(pool).values())
        total = sum(tally.weight for tally in tallies)
        if not total or tallies[0].weight < self.consensus * total:
            return ""
        return f"{tallies[0].weight / total:.0%} of the confident weight agree"

    def _stop(self, pool: SamplePool, why: str) -> SamplerDecision:
        voters = self._voters(pool)
        weights = {index: vote.weight for index, vote in voters.items()}
        of = len(pool.branches)
        clear = f"{len(voters)} of {of} samples cleared the bar of {self._bar:.3f} and can vote"
        return SamplerDecision(
            stop=True, voters=tuple(voters), weights=weights, why=f"{why}; {clear}"
        )
