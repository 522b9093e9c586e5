"""The saturation model TTSPM: when more thinking stops paying.

From "Scaling over Scaling" (arXiv 2505.20522), re-derived. One unit of thinking, a parallel
sample or a sequential round, finds the answer with probability p, independently, of the share F_max
of questions that the model can answer at all:

    F(N) = F_max (1 - (1 - p)^N)

The gain of one more unit is the difference

    F(N + 1) - F(N) = F_max ((1 - p)^N - (1 - p)^(N + 1)) = F_max p (1 - p)^N

which falls by the factor 1 - p each time. It is at most eps from the first N with
(1 - p)^N <= eps / (F_max p), so with both logarithms negative

    N* = ceil( ln(eps / (F_max p)) / ln(1 - p) ),    0 where F_max p <= eps already.

Serial and parallel together. A chain of s rounds whose first finds the answer with probability p
and each later one repairs a wrong one with probability q fails with (1 - p)(1 - q)^(s - 1);
n independent chains all fail with the n-th power of that:

    F(n, s) = F_max (1 - ((1 - p) (1 - q)^(s - 1))^n)

at n (first + (s - 1) round) tokens, and a latency of first + (s - 1) round tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from weft.reasoning.samplers.sampler import GO_ON, SamplePool, SamplerDecision, ended_votes
from weft.reasoning.selection.vote import count_votes

_ROUNDING = 1e-12


def performance(n: int, p: float, f_max: float = 1.0) -> float:
    """F(n): the share of questions answered with `n` units."""
    return f_max * (1 - (1 - p) ** n)


def gain(n: int, p: float, f_max: float = 1.0) -> float:
    """F(n + 1) - F(n): the gain of one more unit after `n`."""
    return f_max * p * (1 - p) ** n


def saturation(p: float, eps: float, f_max: float = 1.0) -> int:
    """N*: the least number of units after which one more gains at most `eps`.

    Raises: `ValueError` for p or f_max outside of 0 to 1, or an eps that is not positive.
    """
    if not 0 <= p <= 1 or not 0 <= f_max <= 1:
        raise ValueError(f"p and f_max must be from 0 to 1, got {p}, {f_max}")
    if eps <= 0:
        raise ValueError(f"eps must be above 0, got {eps}")
    if f_max * p <= eps:
        return 0
    if p == 1:
        return 1
    return ceil(log(eps / (f_max * p)) / log(1 - p) - _ROUNDING)


@dataclass(frozen=True, slots=True)
class ThinkingSplit:
    """`parallel` chains of `serial` rounds, with their expected performance and cost.

    `why`: the limit that keeps it from being larger.
    """

    parallel: int
    serial: int
    performance: float
    tokens: int
    latency_tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class ChainCosts:
    """Tokens of a chain's first round, and of each later one."""

    first: int
    round: int

    def __post_init__(self) -> None:
        if self.first < 1 or self.round < 1:
            raise ValueError(f"rounds cost at least 1 token, got {self.first}, {self.round}")

    def chain(self, serial: int) -> int:
        """Tokens of a chain of `serial` rounds."""
        return self.first + (serial - 1) * self.round


def split(
    p: float,
    q: float,
    costs: ChainCosts,
    budget: int,
    *,
    latency: int | None = None,
    width: int | None = None,
    eps: float = 0.01,
    f_max: float = 1.0,
) -> ThinkingSplit:
    """The best split of at most `budget` tokens into parallel chains and serial rounds.

    `latency` bounds the tokens of one chain, `width` the chains. Of two splits whose performance
    differs by less than `eps`, the one of fewer tokens is better, then the quicker: nothing is
    spent beyond saturation. Raises: `ValueError` when the budget or the latency does not pay for a
    first round.
    """
    longest = budget if latency is None else min(budget, latency)
    if longest < costs.first:
        raise ValueError(f"{longest} tokens do not pay for one round of {costs.first}")
    best: ThinkingSplit | None = None
    for serial in range(1, (longest - costs.first) // costs.round + 2):
        fails = (1 - p) * (1 - q) ** (serial - 1)
        found = _chains(1 - fails, serial, costs.chain(serial), budget, width, eps, f_max)
        best = found if best is None else _better(best, found, eps)
        if f_max * fails * q <= eps:
            break
    assert best is not None
    return best


def _chains(
    p: float, serial: int, tokens: int, budget: int, width: int | None, eps: float, f_max: float
) -> ThinkingSplit:
    """As many useful chains of `serial` rounds and `tokens` as the budget allows."""
    limits = {
        "more would gain less than eps": max(1, saturation(p, eps, f_max)),
        "the budget is spent": budget // tokens,
        "no more may run side by side": budget if width is None else width,
    }
    why = min(limits, key=lambda reason: limits[reason])
    parallel = limits[why]
    return ThinkingSplit(
        parallel, serial, performance(parallel, p, f_max), parallel * tokens, tokens, why
    )


def _better(one: ThinkingSplit, other: ThinkingSplit, eps: float) -> ThinkingSplit:
    ahead = other.performance - one.performance
    if abs(ahead) > eps:
        return other if ahead > 0 else one
    return min(one, other, key=lambda s: (s.tokens, s.latency_tokens, -s.performance))


@dataclass(slots=True)
class SaturationSampler:
    """A pilot of `pilot` samples, then as many as the saturation model finds useful.

    The chance p of a sample is estimated by the share of the leading answer, with one vote for and
    one against added, anew after each wave. `eps`: the least gain in accuracy that pays for another
    sample.
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

    def decide(self, pool: SamplePool) -> SamplerDecision:
        """Start the pilot; after each wave, start the samples missing up to saturation."""
        if not pool.branches:
            return SamplerDecision(start=self.pilot)
        if pool.running:
            return GO_ON
        started = len(pool.branches)
        tallies = count_votes(ended_votes(pool.ended))
        p = ((tallies[0].count if tallies else 0) + 1) / (started + 2)
        enough = min(self.limit, saturation(p, self.eps))
        if started < enough:
            return SamplerDecision(start=enough - started)
        why = f"p is about {p:.2f} after {started} samples, one more gains {gain(started, p):.4f}"
        return SamplerDecision(stop=True, why=f"{why}, eps is {self.eps:g}")
