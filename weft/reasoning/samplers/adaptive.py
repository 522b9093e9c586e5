"""Adaptive consistency (ASC, arXiv 2305.11860): sample until the leader is likely enough."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision, ended_votes
from weft.reasoning.selection.vote import count_votes


def lead_probability(first: int, second: int) -> float:
    """The probability that the answer with `first` votes is more frequent than the second.

    The mass above one half of Beta(first + 1, second + 1), in closed form:
    sum_{k=0}^{first} C(n, k) / 2^n with n = first + second + 1.
    """
    n = first + second + 1
    return sum(comb(n, k) for k in range(first + 1)) / (1 << n)


@dataclass(slots=True)
class AdaptiveSampler:
    """Waves of `wave` samples until the leader's probability exceeds `threshold`.

    `wave` 1 is the published method: in sequence, the cheapest and the slowest.
    """

    limit: int = 40
    threshold: float = 0.95
    wave: int = 1
    probe_tokens: None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if self.limit < 1 or self.wave < 1:
            raise ValueError(f"limit and wave must be at least 1, got {self.limit}, {self.wave}")
        if not 0.5 <= self.threshold < 1:
            raise ValueError(f"threshold must be from 0.5 to below 1, got {self.threshold}")

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start a wave; when it has ended, test, and stop or start the next."""
        if pool.running:
            return GO_ON
        started = len(pool.branches)
        counts = [tally.count for tally in count_votes(ended_votes(pool.ended))] + [0, 0]
        sure = lead_probability(counts[0], counts[1])
        if counts[0] and sure > self.threshold:
            why = f"{counts[0]} to {counts[1]} after {started} samples: sure to {sure:.3f}"
            return SamplerDecision(stop=True, why=f"{why}, above {self.threshold:g}")
        if started >= self.limit:
            return SamplerDecision(stop=True, why=f"all {started} samples are used up")
        return SamplerDecision(start=min(self.wave, self.limit - started))
