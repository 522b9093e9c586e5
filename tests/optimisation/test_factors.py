"""The factor model beside dense linear algebra, and what it makes of blocks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.optimisation.planted import BASELINE, KNOBS
from weft.optimisation.candidates import Candidate
from weft.optimisation.factors import FactorModel, FactorSpace
from weft.optimisation.goal import GoalResponses, StudyGoal
from weft.optimisation.screening import Screening, balanced_design

SPACE = FactorSpace(KNOBS, BASELINE)


def worth(candidate: Candidate) -> float:
    """Effects 0.2 (prompt c), 0.1 (order y), and -0.4 where both are set with demos."""
    settings = dict(candidate.settings)
    both = settings["draft.prompt"] == "c" and settings["draft.demos"] == 4
    one, other = settings["draft.prompt"] == "c", settings["solve.order"] == "y"
    return 0.2 * one + 0.1 * other - 0.4 * both


def blocks(count: int, noise: float, cases: int = 10) -> list[dict[Candidate, list[list[float]]]]:
    random, made = Random(4), []
    for at in range(count):
        difficulty = [random.gauss(at, 1.0) for _ in range(cases)]  # rounds drift, cases differ
        made.append(
            {
                each: [[worth(each) + hard + random.gauss(0, noise) for hard in difficulty]]
                for each in [BASELINE, *balanced_design(SPACE, 10, random)]
            }
        )
    return made


def test_a_balanced_design_shows_each_option_equally_often() -> None:
    design = balanced_design(
        FactorSpace({"a": (1, 2), "b": (1, 2, 3)}, Candidate.of({"a": 1, "b": 1})), 6, Random(0)
    )
    assert sum(dict(each.settings)["a"] == 1 for each in design) in (2, 3)  # equal rows are one
    assert {dict(each.settings)["b"] for each in design} == {1, 2, 3}


def test_it_recovers_effects_through_drift_and_difficulty() -> None:
    model = FactorModel.fit(SPACE, blocks(12, 0.4, 60))
    for candidate in (each for block in blocks(2, 0.4) for each in block):
        assert model.change(candidate) == pytest.approx(worth(candidate), abs=0.06)
        assert model.deviation(candidate) < 0.06
    assert model.change(BASELINE) == 0
    assert model.deviation(BASELINE) == 0


def test_the_posterior_is_ridge_regression_of_centred_means() -> None:
    made = blocks(5, 0.5)
    model = FactorModel.fit(SPACE, made)
    rows, values = [], []
    for block in made:
        dense = np.zeros((len(block), SPACE.size))
        for at, candidate in enumerate(block):
            dense[at, SPACE.features(candidate)] = 1
        means = np.array([np.mean(own[0]) for own in block.values()])
        rows.append((dense - dense.mean(axis=0)) * np.sqrt(10))
        values.append((means - means.mean()) * np.sqrt(10))
    x, y = np.concatenate(rows), np.concatenate(values)
    found = []
    for pair_prior in (0.07, 0.25):
        prior = np.diag([1 / 0.3**2] * len(SPACE.mains) + [1 / pair_prior**2] * len(SPACE.pairs))
        found.append(np.linalg.solve(x.T @ x + prior, x.T @ y))
    assert any(model.means[0] == pytest.approx(each, abs=1e-9) for each in found)


def test_draws_scatter_as_the_deviation_says() -> None:
    model, random = FactorModel.fit(SPACE, blocks(2, 0.5)), Random(1)
    candidate = SPACE.candidate({"draft.prompt": "c", "solve.order": "y"})
    features = SPACE.features(candidate)
    drawn = [sum(model.draw(random)[0][at] for at in features) for _ in range(800)]
    assert np.mean(drawn) == pytest.approx(model.change(candidate), abs=0.02)
    assert np.std(drawn) == pytest.approx(model.deviation(candidate), rel=0.3)


def test_pairs_are_left_out_of_spaces_that_are_too_large() -> None:
    knobs = {f"k{at}": tuple(range(6)) for at in range(10)}
    space = FactorSpace(knobs, Candidate.of(dict.fromkeys(knobs, 0)))
    assert len(space.mains) == 50
    assert 50 < space.size <= 110


def test_the_expected_best_pays_for_its_edits_and_avoids_what_is_banned() -> None:
    model = FactorModel.fit(SPACE, blocks(12, 0.4, 60))
    responses = GoalResponses(StudyGoal(), (None,), ())
    best = Screening(model, responses).incumbent(Random(0))
    assert best.edits(BASELINE) == {"draft.prompt": "c", "solve.order": "y"}
    dear = Screening(model, responses, price=0.15).incumbent(Random(0))
    assert dear.edits(BASELINE) == {"draft.prompt": "c"}
    banned = Screening(model, responses, {("draft.prompt", "c")}, 0.05).incumbent(Random(0))
    assert banned.edits(BASELINE) == {"solve.order": "y"}
    assert Screening(model, responses).most_valuable_edit(best) == ("draft.prompt", "c")
    assert Screening(model, responses).most_valuable_edit(BASELINE) is None
