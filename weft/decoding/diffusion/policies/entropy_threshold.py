"""Commit every slot whose entropy is small enough. Meant for models trained to be certain."""

from __future__ import annotations

from dataclasses import dataclass

from weft.decoding.diffusion.action import Action
from weft.decoding.diffusion.adapter import Traits
from weft.decoding.diffusion.canvas import Canvas
from weft.decoding.diffusion.policies.ranking import commit, ranked
from weft.decoding.diffusion.policies.threshold import reaches
from weft.decoding.diffusion.policy import Need
from weft.decoding.diffusion.stats import Drawn, Stats


@dataclass(frozen=True, slots=True)
class EntropyThreshold:
    """dParallel's rule (Chen et al. 2025): entropy at most `nats`, or the least of all."""

    nats: float = 0.5
    needs: frozenset[Need] = frozenset()

    def __post_init__(self) -> None:
        if not self.nats >= 0.0:
            raise ValueError(f"an entropy of {self.nats} nats")

    def begin(self, _canvas: Canvas, _traits: Traits) -> _Certain:
        return _Certain(self)

    def most_forwards(self, slots: int) -> int:
        return slots


class _Certain:
    def __init__(self, settings: EntropyThreshold) -> None:
        self._settings = settings

    def propose(self, stats: Stats, drawn: Drawn, _canvas: Canvas) -> Action:
        rows = ranked(-stats.entropy, stats.open)
        certain = int(reaches(-stats.entropy[rows], -self._settings.nats).sum())
        return commit(stats, drawn, rows[: max(1, certain)])
