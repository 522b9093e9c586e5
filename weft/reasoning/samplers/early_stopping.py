"""Early-stopping self-consistency (ESC, arXiv 2401.10480): stop when a whole window agrees."""

from __future__ import annotations

from dataclasses import dataclass

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision


@dataclass(slots=True)
class EarlyStoppingSampler:
    """Windows of `window` parallel samples in sequence, `limit` samples in all."""

    limit: int = 40
    window: int = 8
    probe_tokens: None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if self.limit < 1 or self.window < 1:
            raise ValueError(f"limit and window must be at least 1, got {self}")

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start a window; when it has ended, stop if it is unanimous, else start the next.

        A sample without an answer agrees with none.
        """
        if pool.running:
            return GO_ON
        started = len(pool.branches)
        last = pool.branches[-min(self.window, started) :] if started else []
        keys = {branch.key for branch in last}
        if len(keys) == 1 and None not in keys and len(last) == self.window:
            why = f"window {-(-started // self.window)} of {self.window} samples is unanimous"
            return SamplerDecision(stop=True, why=why)
        if started >= self.limit:
            return SamplerDecision(stop=True, why=f"all {started} samples are used up")
        return SamplerDecision(start=min(self.window, self.limit - started))
