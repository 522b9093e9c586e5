"""What weights buy: the mean loss and cost of a policy over measured prompts, weight by weight.

Asks no model: every model's loss and cost on every prompt are known already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.planner.choice.ranking import CostWeights, LossPredictor, ModelProfile, rank


@dataclass(frozen=True, slots=True)
class MeasuredPrompt:
    """A prompt, and what each model did with it: its loss and its cost, in one unit each."""

    prompt: str
    losses: Mapping[str, float]
    costs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A policy over all prompts. `hits` is the share of prompts on which the chosen model had the
    least loss, `shares` how often each model was chosen.
    """

    weights: CostWeights
    loss: float
    cost: float
    hits: float
    shares: Mapping[str, float]


def sweep(
    measured: Sequence[MeasuredPrompt],
    predictor: LossPredictor,
    profiles: Mapping[str, ModelProfile],
    weights: Iterable[CostWeights],
) -> tuple[SweepPoint, ...]:
    """One point for each of `weights`."""
    if not measured:
        raise ValueError("there is nothing to sweep over")
    predicted = [predictor.losses(each.prompt) for each in measured]
    points = []
    for each in weights:
        chosen = [rank(losses, profiles, each)[0].model for losses in predicted]
        points.append(_point(each, measured, chosen))
    return tuple(points)


def _point(
    weights: CostWeights, measured: Sequence[MeasuredPrompt], chosen: Sequence[str]
) -> SweepPoint:
    count = len(measured)
    pairs = list(zip(measured, chosen, strict=True))
    return SweepPoint(
        weights,
        sum(each.losses[name] for each, name in pairs) / count,
        sum(each.costs[name] for each, name in pairs) / count,
        sum(each.losses[name] <= min(each.losses.values()) for each, name in pairs) / count,
        {name: number / count for name, number in sorted(Counter(chosen).items())},
    )


def pareto(points: Iterable[SweepPoint]) -> tuple[SweepPoint, ...]:
    """Those of `points` that no other beats in loss and cost; by rising cost."""
    kept: list[SweepPoint] = []
    for point in sorted(points, key=lambda each: (each.cost, each.loss)):
        if not kept or point.loss < kept[-1].loss:
            kept.append(point)
    return tuple(kept)
