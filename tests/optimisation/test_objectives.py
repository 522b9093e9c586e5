"""Figures, dominance, fronts and hypervolumes beside brute force."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import InputError
from weft.evaluation.statistics import mcnemar_exact
from weft.optimisation.candidates import CaseOutcome
from weft.optimisation.objectives import (
    COST,
    LATENCY,
    QUALITY,
    Objective,
    dominates,
    dominates_with_confidence,
    hypervolume,
    pareto_front,
    point,
)

POINTS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=7)


def outcomes(scores: list[float], seconds: float = 1.0, cost: float = 1.0) -> list[CaseOutcome]:
    return [CaseOutcome(score, seconds, cost) for score in scores]


@given(POINTS, st.sampled_from((2, 3)))
def test_hypervolume_is_the_number_of_unit_cells(
    points: list[tuple[int, ...]], objectives: int
) -> None:
    cut = [each[:objectives] for each in points]
    cells = sum(
        any(all(low < high for low, high in zip(cell, each, strict=True)) for each in cut)
        for cell in product(range(4), repeat=objectives)
    )
    floats = [tuple(map(float, each)) for each in cut]
    assert hypervolume(floats, (0.0,) * objectives) == pytest.approx(cells)


@given(POINTS)
def test_the_front_has_all_of_the_volume_and_nobody_on_it_is_dominated(
    points: list[tuple[int, ...]],
) -> None:
    named = {at: tuple(map(float, each)) for at, each in enumerate(points)}
    front = pareto_front(named)
    for name, own in named.items():
        assert (name in front) != any(dominates(other, own) for other in named.values())
    origin = (-1.0, -1.0, -1.0)
    whole = hypervolume(list(named.values()), origin)
    assert hypervolume([named[name] for name in front], origin) == pytest.approx(whole)


def test_figures_are_oriented_and_in_their_units() -> None:
    made = [CaseOutcome(at / 10, float(at), 0.1 * at) for at in range(11)]
    assert point(made, (QUALITY, LATENCY, COST)) == pytest.approx((0.5, -9.5, -0.5))
    assert QUALITY.allowed_loss(made) == pytest.approx(0.02)
    assert LATENCY.allowed_loss(made) == pytest.approx(0.95)


def test_p_values_follow_what_is_compared() -> None:
    new, old = outcomes([1.0] * 14 + [0.0] * 26), outcomes([0.0] * 12 + [1.0] * 4 + [0.0] * 24)
    assert QUALITY.p_value(new, old) == mcnemar_exact(12, 2)
    grouped = QUALITY.p_value(new, old, groups=[at // 10 for at in range(40)])
    assert grouped > QUALITY.p_value(new, old)  # 4 groups show less than 40 cases
    graded = outcomes([0.5] * 14 + [0.0] * 26)
    assert 0 < QUALITY.p_value(graded, old) < 1
    assert LATENCY.p_value(outcomes([1.0] * 40, 0.5), outcomes([1.0] * 40)) < 0.01
    assert COST.p_value(outcomes([1.0] * 40, cost=0.5), outcomes([1.0] * 40)) < 0.001


def test_dominance_with_confidence_needs_every_objective_and_enough_cases() -> None:
    random = Random(3)
    old = [CaseOutcome(float(random.random() < 0.5), 1.0, 1.0) for _ in range(200)]
    better = [CaseOutcome(max(each.score, float(random.random() < 0.5)), 0.5, 1.0) for each in old]
    slower = [CaseOutcome(each.score, 2.0, 1.0) for each in better]
    all_three = (QUALITY, LATENCY, COST)
    assert dominates_with_confidence(better, old, all_three)
    assert not dominates_with_confidence(slower, old, all_three)
    assert not dominates_with_confidence(old, old, all_three)
    assert not dominates_with_confidence(better[:3], old[:3], (QUALITY,))


def test_objectives_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="margin"):
        Objective("quality", -0.1)
    with pytest.raises(InputError, match="quantile"):
        Objective("latency", 0.1, quantile=1.0)
    with pytest.raises(InputError, match="paired"):
        QUALITY.gain(outcomes([1.0]), outcomes([1.0, 0.0]))
