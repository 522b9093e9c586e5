"""Figures beside the studies: the front, racing against the full grid, calls without reuse."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evals.optimise.bench import Bench
from evals.optimise.planted import BASELINE, CANDIDATES, CASES
from evals.optimise.studies import QUALITIES, planted, search, study
from weft.optimisation.candidates import Candidate, CaseId
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import QUALITY, Objective, Point, hypervolume, pareto_front
from weft.optimisation.racing import race

_ANY_COST: Final = Objective("cost", 10.0)
_RACERS: Final = 16
RACE_SHARE: Final = 0.4
"""Evaluations of a race, as a share of those of the full grid."""


def front_share(number: int) -> tuple[float, float]:
    """Hypervolume of the found front over that of the true one, quality and cost, `additive`; the
    share of the calls that the whole grid takes.
    """
    model = planted("additive", number)
    bench = Bench(model)
    q = QUALITIES[number % len(QUALITIES)]
    report = asyncio.run(search(bench, q, model.seed, StudyGoal(QUALITY, (_ANY_COST,))).run())

    def true(candidate: Candidate) -> Point:
        return model.true_figure(candidate, "quality"), -model.cost(candidate)

    points = {each: true(each) for each in CANDIDATES}
    reference = (points[BASELINE][0] - 0.1, min(point[1] for point in points.values()) - 0.01)
    whole = hypervolume([points[each] for each in pareto_front(points)], reference)
    found = hypervolume([points[each] for each in report.front], reference)
    grid = Bench(model)
    for candidate in CANDIDATES:
        grid.scores(candidate, CASES.development)
    return found / whole, bench.calls / grid.calls


def race_gain(number: int) -> tuple[float, float]:
    """The true gain of a race's winner, and of the full grid's, among the same 16 candidates."""
    model = planted("additive", number)
    random = np.random.default_rng((model.seed, 6))
    drawn = [CANDIDATES[int(at)] for at in random.choice(len(CANDIDATES), _RACERS, replace=False)]
    cases = list(CASES.development)

    async def measure(
        candidates: Sequence[Candidate], asked: Sequence[CaseId]
    ) -> Mapping[Candidate, Sequence[float]]:
        at = list(asked)
        return {each: model.score(each, False)[at].tolist() for each in candidates}  # type: ignore[index]

    evaluations = int(RACE_SHARE * _RACERS * len(cases))
    ended = asyncio.run(race(BASELINE, drawn, cases, measure, evaluations=evaluations))
    grid = max([BASELINE, *drawn], key=lambda each: float(model.score(each, False)[cases].mean()))
    base = model.truth[BASELINE]
    return model.truth[ended.survivors[0]] - base, model.truth[grid] - base


def reuse_share(case: str, number: int) -> float:
    """Fresh calls of weft's search over those of the same search without any reuse."""
    with_cache, without = study(case, "weft", number), study(case, "weft", number, "none")
    return with_cache.calls / without.calls
