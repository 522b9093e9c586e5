"""Trained, static, random and perfect choice of a model, on prompts that nobody has learnt from.

The models are small and local: one counting model for each domain, which never saw the items it is
asked about, and the embedded chat model. The loss is that on a given answer (bits per byte), as in
Tryage (arXiv 2308.11601), not the quality of an answer that was generated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import fmean

from evals.engine.rows import Row
from evals.planning.choice.expert import NgramExpert
from evals.planning.choice.items import Item, items
from evals.planning.choice.large import MODEL, ChatModel
from evals.planning.choice.measuring import Scorer, measure, profiles_of, rows_of
from evals.planning.choice.sweep import MeasuredPrompt, pareto, sweep
from evals.planning.effort import Effort
from weft.core.errors import ModelNotFound
from weft.planner.choice import CostWeights, LossPredictor, StaticPredictor, train

WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


async def run(effort: Effort) -> list[Row]:
    """Measure, learn on one half, test on the other. Raises: `Skipped` without the data."""
    return await asyncio.to_thread(_run, effort.of(8, 40))


def _run(each: int) -> list[Row]:
    """`each` items of a domain are learnt from, and as many tested on."""
    taught: list[Item] = []
    asked: list[Item] = []
    scorers: dict[str, Scorer] = {}
    for domain, found in items().items():
        taught += found[:each]
        asked += found[each : 2 * each]
        rest = found[2 * each :]
        scorers[f"{domain}-expert"] = NgramExpert(f"{it.prompt}\n{it.answer}" for it in rest)
    try:
        scorers[MODEL] = ChatModel()
        words = f"{MODEL} (torch, answers scored, not generated) and {len(scorers) - 1} byte models"
    except ModelNotFound as error:
        words = f"byte models only: {error}"
    seen = measure(scorers, taught)
    rows = [Row("choice", "router", "model", None, words)]
    return rows + compare(scorers, seen, measure(scorers, asked))


def compare(
    scorers: Mapping[str, Scorer], seen: Sequence[MeasuredPrompt], unseen: Sequence[MeasuredPrompt]
) -> list[Row]:
    """The rows of every policy on `unseen`, where `seen` is what it could learn from."""
    profiles = profiles_of(scorers, seen)
    means = {name: profile.loss or 0.0 for name, profile in profiles.items()}
    policies: dict[str, LossPredictor] = {
        "trained": train(rows_of(seen)),
        "static": StaticPredictor(means),
    }
    rows = [
        Row("choice", "all", "prompts_learnt_from", len(seen), "prompts"),
        Row("choice", "all", "prompts_tested_on", len(unseen), "prompts"),
    ]
    for name in scorers:
        rows += _rows("choice", f"always {name}", *_always(name, unseen))
    for system, bound in _bounds(unseen).items():
        rows += _rows("choice", system, *bound)
    for system, predictor in policies.items():
        points = sweep(unseen, predictor, profiles, [CostWeights(latency=w) for w in WEIGHTS])
        free = points[0]
        rows += _rows("choice", system, free.loss, free.cost, free.hits)
        for point in pareto(points):
            case = f"pareto latency={point.weights.latency:g}"
            rows += _rows(case, system, point.loss, point.cost, point.hits)
    return rows


def _rows(case: str, system: str, loss: float, cost: float, hits: float) -> list[Row]:
    return [
        Row(case, system, "best_model_hits", hits, "share"),
        Row(case, system, "loss", loss, "bits/byte"),
        Row(case, system, "cost", cost, "s/prompt"),
    ]


def _always(name: str, unseen: Sequence[MeasuredPrompt]) -> tuple[float, float, float]:
    return (
        fmean(each.losses[name] for each in unseen),
        fmean(each.costs[name] for each in unseen),
        fmean(each.losses[name] <= min(each.losses.values()) for each in unseen),
    )


def _bounds(unseen: Sequence[MeasuredPrompt]) -> dict[str, tuple[float, float, float]]:
    """Choosing blindly, in expectation, and choosing with the losses known."""
    best = [min(each.losses, key=each.losses.__getitem__) for each in unseen]
    return {
        "random": (
            fmean(fmean(each.losses.values()) for each in unseen),
            fmean(fmean(each.costs.values()) for each in unseen),
            fmean(1 / len(each.losses) for each in unseen),
        ),
        "perfect": (
            fmean(each.losses[name] for each, name in zip(unseen, best, strict=True)),
            fmean(each.costs[name] for each, name in zip(unseen, best, strict=True)),
            1.0,
        ),
    }
