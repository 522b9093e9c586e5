"""Self-consistency (arXiv 2203.11171): a fixed number of samples."""

from __future__ import annotations

from dataclasses import dataclass

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision, decided_winner


@dataclass(slots=True)
class FixedSampler:
    """`n` parallel samples.

    `cancel_decided`: cancel samples that can no longer change the majority's winner.
    """

    n: int
    cancel_decided: bool = False
    probe_tokens: None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1, got {self.n}")

    @property
    def limit(self) -> int:
        return self.n

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start all; stop when all have ended, or when the vote is decided."""
        if not pool.branches:
            return SamplerDecision(start=self.n)
        running = len(pool.running)
        if not running:
            return SamplerDecision(stop=True, why=f"all {self.n} samples have ended")
        winner = decided_winner(pool.branches) if self.cancel_decided else None
        if winner is None:
            return GO_ON
        why = f"decided: {winner.count} of {self.n} agree, the {running} that ran could not win"
        return SamplerDecision(stop=True, why=why)
