"""Sample until one more sample would gain too little (TTSPM, `weft.reasoning.saturation`).

Knows no answer but its count.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.reasoning.sampling.decided import ballots_of
from weft.reasoning.sampling.sampler import GO_ON, Decision, Pool
from weft.reasoning.saturation import gain, saturation
from weft.reasoning.selection.vote import tally


@dataclass(slots=True)
class Saturating:
    """A pilot of `pilot` samples, then as many as the model of saturation says are of use.

    The chance p of a sample is taken to be the share of the leading answer, with one vote for and
    one against added (nothing better is known without the truth). `eps`: the least gain in accuracy
    for which another sample is worth its tokens. p is estimated anew after each wave.
    """

    limit: int = 40
    pilot: int = 4
    eps: float = 0.02
    probe_tokens: None = None
    confidence: None = None

    def __post_init__(self) -> None:
        if not 1 <= self.pilot <= self.limit:
            raise ValueError(f"pilot must be from 1 to limit {self.limit}, got {self.pilot}")
        if not 0 < self.eps < 1:
            raise ValueError(f"eps must be above 0 and below 1, got {self.eps}")

    def decide(self, pool: Pool) -> Decision:
        """Start the pilot; when a wave has ended, start what is missing up to saturation."""
        if not pool.branches:
            return Decision(start=self.pilot)
        if pool.running:
            return GO_ON
        started = len(pool.branches)
        standings = tally(ballots_of(pool.ended))
        p = ((standings[0].count if standings else 0) + 1) / (started + 2)
        enough = min(self.limit, saturation(p, self.eps))
        if started < enough:
            return Decision(start=enough - started)
        why = f"p is about {p:.2f} after {started} samples, one more gains {gain(started, p):.4f}"
        return Decision(stop=True, why=f"{why}, eps is {self.eps:g}")
