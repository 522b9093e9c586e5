"""Commit as many slots as a budget of lost information allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import commit, ranked
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class EntropyBound:
    """EB-Sampler (Ben-Hamu et al. 2025): of the slots by rising entropy, the longest beginning
    whose sum of entropies less the largest is at most `nats`; at least one.

    Their joint law has at least the entropy of each one: so the sum less the largest bounds the
    divergence of the product of predictions from it, if predictions are true.
    """

    nats: float = 0.1
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not self.nats >= 0.0:
            raise ValueError(f"an entropy of {self.nats} nats")

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Bounded:
        return _Bounded(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Bounded:
    def __init__(self, settings: EntropyBound) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, _canvas: Canvas) -> Action:
        rows = ranked(-stats.entropy, stats.open)
        entropy = stats.entropy[rows]
        # ascending: the largest of a beginning is its last
        lost = np.cumsum(entropy) - entropy
        allowed = int(reaches(-lost, -self._settings.nats).sum())
        return commit(stats, drawn, rows[: max(1, allowed)])
