"""Parallel-Probe: what would each sample answer now? Minorities are pruned, a settled vote stops.

From the release of Zheng et al. (2026), the variant in which only samples that are not pruned vote.
Knows no text: the host asks the samples beside their way, without adding to them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from weft.reasoning.sampling.sampler import GO_ON, Branch, Decision, Pool
from weft.reasoning.selection.vote import Ballot, tally


@dataclass(slots=True)
class Probing:
    """`n` samples side by side, each probed at every multiple of `every` tokens.

    A round is over when all that run have its probe; the first two make one, as released. After
    `warmup` rounds a sample that disagreed with the majority in `patience` rounds in a row is
    pruned: it runs no further and votes no more. Stops when the majority has been the same for
    `stable` rounds beyond the first, or when nothing runs.
    """

    n: int = 64
    every: int = 500
    warmup: int = 15
    patience: int = 7
    stable: int = 40
    confidence: None = None
    _round: int = field(default=0, init=False)
    _astray: Counter[int] = field(default_factory=Counter, init=False)
    _pruned: set[int] = field(default_factory=set, init=False)
    _majority: str | None = field(default=None, init=False)
    _same: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        for name in ("n", "every", "patience", "stable"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.warmup < 0:
            raise ValueError(f"warmup must not be negative, got {self.warmup}")

    @property
    def limit(self) -> int:
        """All of them."""
        return self.n

    @property
    def probe_tokens(self) -> int:
        """The distance of probes in tokens."""
        return self.every

    def decide(self, pool: Pool) -> Decision:
        """Start all; at the end of a round, prune, and stop when the majority is settled."""
        if not pool.branches:
            return Decision(start=self.n)
        cancel: list[int] = []
        while self._over(pool):
            cancel += self._close_round(pool)
            if self._same >= self.stable:
                why = f"the majority is the same for {self._same} rounds of {self.every} tokens"
                return self._stop(pool, why)
        if not any(branch.index not in self._pruned for branch in pool.running):
            return self._stop(pool, f"all {self.n} samples have ended or are pruned")
        if cancel:
            why = f"disagreed with the majority in {self.patience} rounds in a row"
            return Decision(cancel=tuple(cancel), why=why)
        return GO_ON

    def _over(self, pool: Pool) -> bool:
        running = [b for b in pool.running if b.index not in self._pruned]
        return bool(running) and all(len(b.probes) >= self._round + 2 for b in running)

    def _close_round(self, pool: Pool) -> list[int]:
        votes = self._votes(pool, self._round + 2)
        majority = _majority(votes)
        pruned: list[int] = []
        if self._round >= self.warmup and len(votes) > 1:
            running = (branch.index for branch in pool.running if branch.index in votes)
            pruned = [index for index in running if self._give_up(index, votes, majority)]
            self._pruned.update(pruned)
            majority = _majority(self._votes(pool, self._round + 2)) or majority
        self._same = self._same + 1 if majority == self._majority else 0
        self._majority = majority
        self._round += 1
        return pruned

    def _give_up(self, index: int, votes: dict[int, str | None], majority: str | None) -> bool:
        self._astray[index] = self._astray[index] + 1 if votes[index] != majority else 0
        return self._astray[index] >= self.patience

    def _votes(self, pool: Pool, probes: int) -> dict[int, str | None]:
        """What each sample that is not pruned says at its probe number `probes`, or at its end."""
        return {
            branch.index: _at(branch, probes)
            for branch in pool.branches
            if branch.index not in self._pruned and branch.status != "cancelled"
        }

    def _stop(self, pool: Pool, why: str) -> Decision:
        voters = tuple(self._votes(pool, self._round + 1))
        pruned = f"; {len(self._pruned)} of {self.n} pruned" if self._pruned else ""
        return Decision(stop=True, voters=voters, why=why + pruned)


def _at(branch: Branch, probes: int) -> str | None:
    if branch.running and len(branch.probes) >= probes:
        return branch.probes[probes - 1]
    return branch.opinion


def _majority(votes: dict[int, str | None]) -> str | None:
    ballots = [Ballot(index, key, 0) for index, key in votes.items() if key is not None]
    standings = tally(ballots, "first")
    return standings[0].key if standings else None
