"""Samplers over recorded samples: one token a unit of time and sample. Knows no model.

All that run write in step, as a server does that decodes them in one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.reasoning.samplers.sampler import SamplePool, Sampler, SamplerDecision, SampleState


@dataclass(frozen=True, slots=True)
class RecordedSample:
    """A sample that came to `key` after `tokens`.

    `probes` are its answers at each multiple of the probing distance; past the last one it answers
    as it ends. `confidences` are the means of its windows at the tokens where they are given.
    """

    key: str | None
    tokens: int
    probes: tuple[str | None, ...] = ()
    confidences: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How a sampler fared: the pool it left, its last decision, and what it cost.

    `total_tokens` include those of cancelled samples; `critical_path_tokens` is the time of the
    stop, since one unit of time is one token.
    """

    pool: SamplePool
    stop: SamplerDecision
    total_tokens: int
    cancelled_tokens: int
    critical_path_tokens: int


def replay(sampler: Sampler, recorded: Sequence[RecordedSample]) -> ReplayResult:
    """Run `sampler` over `recorded`, which are started in their order.

    Raises: `ValueError` when it asks for more samples than are recorded.
    """
    return _SamplerReplay(sampler, recorded).run()


class _SamplerReplay:
    def __init__(self, sampler: Sampler, recorded: Sequence[RecordedSample]) -> None:
        self._sampler = sampler
        self._recorded = recorded
        self._pool = SamplePool()
        self._begun: list[int] = []
        self._now = 0

    def run(self) -> ReplayResult:
        decision = self._sampler.decide(self._pool)
        while self._apply(decision):
            self._now = min(self._next(branch) for branch in self._pool.running)
            for branch in self._pool.running:
                self._advance(branch)
            decision = self._sampler.decide(self._pool)
        for branch in self._pool.running:
            branch.status = "cancelled"
        lost = sum(b.tokens for b in self._pool.branches if b.status == "cancelled")
        total = sum(branch.tokens for branch in self._pool.branches)
        return ReplayResult(self._pool, decision, total, lost, self._now)

    def _apply(self, decision: SamplerDecision) -> bool:
        """Do as decided; whether anything is left that runs."""
        for index in decision.cancel:
            self._pool.branches[index].status = "cancelled"
        if decision.stop:
            return False
        if len(self._pool.branches) + decision.start > len(self._recorded):
            raise ValueError(f"{self._sampler} wants more than {len(self._recorded)} samples")
        self._begun += [self._now] * len(self._pool.start(decision.start))
        return bool(self._pool.running)

    def _next(self, branch: SampleState) -> int:
        """When `branch` next does something that the sampler wants to hear of."""
        recorded, begun = self._recorded[branch.index], self._begun[branch.index]
        moments = [recorded.tokens]
        if self._sampler.probe_tokens is not None:
            moments.append(self._sampler.probe_tokens * (len(branch.probes) + 1))
        if self._sampler.confidence is not None:
            moments += [at for at, _ in recorded.confidences if begun + at > self._now][:1]
        return begun + min(moments)

    def _advance(self, branch: SampleState) -> None:
        recorded = self._recorded[branch.index]
        branch.tokens = min(self._now - self._begun[branch.index], recorded.tokens)
        every = self._sampler.probe_tokens
        while every is not None and branch.tokens >= every * (len(branch.probes) + 1):
            place = len(branch.probes)
            said = recorded.probes[place] if place < len(recorded.probes) else recorded.key
            branch.probes.append(said)
        known = [value for at, value in recorded.confidences if at <= branch.tokens]
        branch.lowest_confidence = min(known, default=None)
        if branch.tokens == recorded.tokens:
            branch.status = "finished"
            branch.key = recorded.key
