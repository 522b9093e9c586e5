"""The gate: what is accepted, and at which level."""

from __future__ import annotations

from random import Random

import pytest

from tests.optimisation.planted import BASELINE
from weft.evaluation.statistics import Interval, cases_needed, detectable_difference
from weft.optimisation.candidates import CaseOutcome
from weft.optimisation.decide import (
    ceiling,
    compare_finalists,
    describe,
    detectable_from,
    no_headroom,
)
from weft.optimisation.goal import StudyGoal
from weft.optimisation.objectives import COST, LATENCY, QUALITY

FINALIST = BASELINE.replace("solve.order", "y")


def drawn(chance: float, seed: int, cases: int = 200, seconds: float = 1.0) -> list[CaseOutcome]:
    random = Random(seed)
    return [CaseOutcome(float(random.random() < chance), seconds) for _ in range(cases)]


def test_equal_candidates_are_accepted_at_most_at_the_level() -> None:
    goal, wrong = StudyGoal(), 0
    for seed in range(60):
        base, new = drawn(0.5, seed, 60), drawn(0.5, seed + 10_000, 60)
        other = drawn(0.5, seed + 20_000, 60)
        found = compare_finalists(
            goal, base, {FINALIST: new, BASELINE.replace("solve.order", "z"): other}, planned=2
        )
        wrong += any(each.accepted(goal, 0.05) for each in found)
    assert wrong / 60 <= 0.05


def test_a_finalist_that_was_not_looked_at_counts_for_holm() -> None:
    base, new = drawn(0.5, 1), drawn(0.64, 2)
    alone = compare_finalists(StudyGoal(), base, {FINALIST: new}, planned=1)[0]
    of_two = compare_finalists(StudyGoal(), base, {FINALIST: new}, planned=2)[0]
    assert of_two.p == alone.p
    assert of_two.p_adjusted == pytest.approx(min(1.0, 2 * alone.p))


def test_better_and_not_kept_is_not_accepted() -> None:
    goal = StudyGoal(QUALITY, (LATENCY,))
    base = drawn(0.4, 1)
    quick = compare_finalists(goal, base, {FINALIST: drawn(0.7, 2)}, planned=1)[0]
    slow = compare_finalists(goal, base, {FINALIST: drawn(0.7, 2, seconds=1.2)}, planned=1)[0]
    assert quick.accepted(goal, 0.05)
    assert not slow.accepted(goal, 0.05)
    assert slow.broken == ("latency",)
    assert "latency is not within its margin" in describe(slow)


def test_worse_is_never_accepted() -> None:
    found = compare_finalists(StudyGoal(), drawn(0.7, 1), {FINALIST: drawn(0.4, 2)}, planned=1)[0]
    assert found.p < 0.001
    assert not found.accepted(StudyGoal(), 0.05)


def test_the_detectable_difference_of_an_interval_is_that_of_the_sample_size() -> None:
    half = 1.959964 * (0.3 / 200) ** 0.5  # of a difference with a discordance of 0.3
    found = detectable_from(Interval(0.0, -half, half), 200, 400)
    assert found == pytest.approx(detectable_difference(400, 0.3), rel=0.03)
    assert cases_needed(found, 0.3) == pytest.approx(400, rel=0.06)
    assert detectable_from(Interval(0.0, -half, half), 0, 400) == float("inf")


def test_headroom_is_missing_at_the_ceiling_and_below_what_could_be_shown() -> None:
    full = [CaseOutcome(1.0)] * 40
    assert ceiling(QUALITY, full, 0.02)
    assert ceiling(QUALITY, full[:20], 0.02) is None
    assert ceiling(QUALITY, [*full, *[CaseOutcome(0.0)] * 4], 0.02) is None
    assert ceiling(COST, full, 0.02) is None
    assert no_headroom(0.05, 0.1) == "the best candidate gains at most 0.050; 0.100 could be shown"
    assert no_headroom(0.2, 0.1) is None
