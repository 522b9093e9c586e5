"""short-m@k (arXiv 2505.17813): the first m of k samples that end vote."""

from __future__ import annotations

from dataclasses import dataclass

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision


@dataclass(slots=True)
class ShortestSampler:
    """`k` parallel samples, all cancelled when `m` of them have an answer.

    Samples that are cut off vote only when fewer than `m` end by themselves.
    """

    k: int = 8
    m: int = 3
    probe_tokens: None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if not 1 <= self.m <= self.k:
            raise ValueError(f"m must be from 1 to k, got m {self.m}, k {self.k}")

    @property
    def limit(self) -> int:
        """The number of samples."""
        return self.k

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start all; stop when `m` are whole. Simultaneous ends count by index."""
        if not pool.branches:
            return SamplerDecision(start=self.k)
        answered = [branch for branch in pool.whole if branch.key is not None]
        whole = sorted(answered, key=lambda branch: (branch.tokens, branch.index))
        if len(whole) >= self.m:
            voters = tuple(branch.index for branch in whole[: self.m])
            return SamplerDecision(
                stop=True, voters=voters, why=f"the first {self.m} of {self.k} ended"
            )
        if not pool.running:
            return SamplerDecision(
                stop=True, why=f"{len(whole)} of {self.k} samples came to an answer"
            )
        return GO_ON
