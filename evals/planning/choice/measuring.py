"""The loss of every model on every item, and how long that took. Chooses nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Protocol

from evals.planning.choice.items import Item
from evals.planning.choice.sweep import MeasuredPrompt
from weft.planner.choice import LossRow, ModelProfile


class Scorer(Protocol):
    """A language model that tells how likely it finds an answer."""

    @property
    def parameters(self) -> int:
        """Its size."""

    def bits_per_byte(self, prompt: str, answer: str) -> float:
        """Its loss."""


def measure(scorers: Mapping[str, Scorer], items: Sequence[Item]) -> list[MeasuredPrompt]:
    """Losses in bits per byte of the answer, costs in seconds, one by one."""
    found = []
    for item in items:
        losses, costs = {}, {}
        for name, scorer in scorers.items():
            started_s = time.perf_counter()
            losses[name] = scorer.bits_per_byte(item.prompt, item.answer)
            costs[name] = time.perf_counter() - started_s
        found.append(MeasuredPrompt(item.prompt, losses, costs))
    return found


def profiles_of(
    scorers: Mapping[str, Scorer], seen: Sequence[MeasuredPrompt]
) -> dict[str, ModelProfile]:
    """What the measured items tell of each model: mean loss, mean seconds, size."""
    return {
        name: ModelProfile(
            loss=fmean(each.losses[name] for each in seen),
            latency_s=fmean(each.costs[name] for each in seen),
            size=scorer.parameters / 1e9,
        )
        for name, scorer in scorers.items()
    }


def rows_of(seen: Sequence[MeasuredPrompt]) -> list[LossRow]:
    """What a predictor learns from."""
    return [LossRow(each.prompt, name, loss) for each in seen for name, loss in each.losses.items()]
