"""DeepConf online (arXiv 2508.15260): samples that become unsure are given up while they run.

Knows no log probability: the host measures confidences (`weft.reasoning.sampling.confidence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.reasoning.sampling.sampler import GO_ON, Branch, Decision, Pool
from weft.reasoning.selection.vote import Ballot, tally


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of `values` lie, between neighbours by straight line."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(slots=True)
class DeepConf:
    """`warmup` samples set the bar; later ones are cancelled when a window falls below it.

    `keep` is the percentage of the warm-up that clears the bar, as published 10 for few tokens or
    90 to be safe; 10 wants a warm-up of 16 or more, since the few that clear it may agree by
    chance. `window`: tokens in a confidence window. Votes weigh as much as the sample's lowest
    confidence; those below the bar have none. Stops once the winner holds `consensus` of all
    weight, or after `limit` samples.
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
        """Tokens in a window of `Branch.lowest_confidence`."""
        return self.window

    def decide(self, pool: Pool) -> Decision:
        """Warm up, set the bar, start the rest, give up what falls below it."""
        if not pool.branches:
            return Decision(start=self.warmup)
        if self._bar is None:
            return self._after_warmup(pool)
        below = tuple(b.index for b in pool.running if not self._clears(b))
        rest = [b for b in pool.running if b.index not in below]
        agreed = self._agreed(pool)
        if agreed or not rest:
            return self._stop(pool, agreed or f"all {len(pool.branches)} samples have ended")
        if below:
            why = f"a window's confidence fell below {self._bar:.3f}"
            return Decision(cancel=below, why=why)
        return GO_ON

    def _after_warmup(self, pool: Pool) -> Decision:
        if pool.running:
            return GO_ON
        known = [b.lowest_confidence for b in pool.ended if b.lowest_confidence is not None]
        self._bar = percentile(known, 100 - self.keep) if known else 0.0
        agreed = self._agreed(pool)
        if agreed or self.limit == self.warmup:
            return self._stop(pool, agreed or f"all {self.limit} samples have ended")
        return Decision(start=self.limit - self.warmup)

    def _clears(self, branch: Branch) -> bool:
        lowest = branch.lowest_confidence
        return lowest is None or lowest >= (self._bar or 0.0)

    def _voters(self, pool: Pool) -> dict[int, Ballot]:
        return {
            b.index: Ballot(b.index, b.key, b.tokens, b.lowest_confidence or 0.0)
            for b in pool.ended
            if b.key is not None and self._clears(b)
        }

    def _agreed(self, pool: Pool) -> str:
        standings = tally(self._voters(pool).values())
        total = sum(standing.weight for standing in standings)
        if not total or standings[0].weight < self.consensus * total:
            return ""
        return f"{standings[0].weight / total:.0%} of the confident weight agree"

    def _stop(self, pool: Pool, why: str) -> Decision:
        voters = self._voters(pool)
        weights = {index: ballot.weight for index, ballot in voters.items()}
        clear = f"{len(voters)} of {len(pool.branches)} samples cleared the bar of {self._bar:.3f}"
        return Decision(stop=True, voters=tuple(voters), weights=weights, why=f"{why}; {clear}")
