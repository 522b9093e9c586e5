"""The planted suite: its models are what they say, and each system keeps to its rule."""

from __future__ import annotations

import numpy as np
import pytest

from evals.optimise.bench import Bench
from evals.optimise.cases import PLANTED
from evals.optimise.extra import RACE_SHARE, race_gain
from evals.optimise.figures import rows_of
from evals.optimise.planted import BASELINE, CANDIDATES, CASES, PlantedModel
from evals.optimise.structures import PlantedProgram, structure_study
from evals.optimise.studies import BUDGET, SYSTEMS, planted, study


@pytest.mark.parametrize("case", PLANTED)
def test_the_planted_optimum_is_better_than_the_baseline(case: str) -> None:
    rooms = [planted(case, number).room for number in range(3)]
    assert all(room == 0 if case == "no_headroom" else room > 0.1 for room in rooms)


def test_a_model_is_a_pure_function_of_settings_and_case() -> None:
    one, other = (
        planted("additive", 4),
        PlantedModel(planted("additive", 4).planted, planted("additive", 4).seed),
    )
    backwards = {each: other.score(each, drifted=False) for each in reversed(CANDIDATES[:20])}
    for candidate in CANDIDATES[:20]:
        assert (one.score(candidate, drifted=False) == backwards[candidate]).all()
    chance = [one.score(each, drifted=False)[list(CASES.held_out)].mean() for each in CANDIDATES]
    truth = [one.truth[each] for each in CANDIDATES]
    assert np.corrcoef(chance, truth)[0, 1] > 0.8


def test_a_call_with_equal_inputs_is_paid_once() -> None:
    bench, cases = Bench(planted("additive", 1)), range(10)
    assert bench.scores(BASELINE, cases)[1].sum() == 30
    assert bench.scores(BASELINE, range(12))[1].sum() == 6
    assert bench.scores(BASELINE.replace("answer.order", "reason_first"), cases)[1].sum() == 10
    assert bench.scores(BASELINE.replace("plan.verify", "yes"), cases)[1].sum() == 20
    assert bench.calls == 66
    whole = Bench(planted("additive", 1), "candidate")
    assert whole.scores(BASELINE, cases)[1].sum() == 30
    assert whole.scores(BASELINE.replace("answer.order", "reason_first"), cases)[1].sum() == 30


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_keeps_to_the_budget_and_repeats_itself(system: str) -> None:
    one, other = study("additive", system, 1), study("additive", system, 1)
    assert one == other
    assert 0 < one.calls <= BUDGET
    assert not one.overrun
    assert one.gain > 0


def test_without_reuse_the_budget_holds_as_well() -> None:
    assert 0 < study("additive", "aflow_rules", 1, "none").calls <= BUDGET


@pytest.mark.parametrize("case", ["no_headroom", "judge_hack"])
def test_weft_does_not_believe_what_is_not_so(case: str) -> None:
    studies = [study(case, "weft", number) for number in range(4)]
    assert not any(each.false for each in studies)
    rows = {(row.system, row.metric): row.value for row in rows_of(studies)}
    assert rows["weft", "false_improved_share"] == 0
    assert rows["weft", "studies"] == 4
    assert rows["weft", "worse_share"] == 0


def test_a_race_finds_what_the_full_grid_finds_for_less() -> None:
    gains = [race_gain(number) for number in range(6)]
    assert RACE_SHARE < 1
    assert sum(raced for raced, _ in gains) > 0.8 * sum(whole for _, whole in gains)


@pytest.mark.slow
def test_the_planted_verifier_is_found_sooner_by_slack_than_at_random() -> None:
    program = PlantedProgram(1)
    assert 0.3 < program.clock.run(program.measure(program.state.baseline))[0] < 0.9
    _, trials, calls = structure_study(1, shuffled=False)
    _, random_trials, random_calls = structure_study(1, shuffled=True)
    assert trials < random_trials
    assert calls < random_calls
