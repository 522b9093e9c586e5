"""No test asks for what a shipped model was trained on: neither its seeds nor its problems."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from evals.reasoning.countdown.problem import Problem, problems, solvable
from evals.reasoning.countdown.sequences import SMALL, development_problems
from evals.reasoning.countdown.training_record import (
    RECORD,
    TEST_PROBLEMS,
    TEST_SEED,
    Overlap,
    TrainedRun,
    TrainingRecord,
    unseen_problems,
)

SHIPPED = TrainingRecord.read()
RUN = TrainedRun("toy", "apr", 100, 3, 4, 5, ("development",))
TOY = TrainingRecord((RUN,))


def test_no_shipped_model_was_trained_on_a_problem_or_a_seed_of_the_test() -> None:
    test = unseen_problems()
    assert len({problem.key for problem in test}) == len(test) == TEST_PROBLEMS >= 1000
    SHIPPED.refuse_overlap(test, TEST_SEED)


def test_development_problems_were_not_trained_on_and_are_not_in_the_test() -> None:
    development = development_problems()
    SHIPPED.refuse_overlap(development)
    asked = {problem.key for problem in unseen_problems()}
    assert not asked & {problem.key for problem in development}


def test_the_test_that_was_published_is_refused() -> None:
    with pytest.raises(Overlap, match="100 of 400 test problems"):
        SHIPPED.refuse_overlap(list(problems(20, 400, SMALL)))
    with pytest.raises(Overlap, match="problems of seed 20"):
        SHIPPED.refuse_overlap([], 20)


def test_the_record_is_that_of_the_weights_that_are_shipped() -> None:
    by_name = {run.name: run for run in SHIPPED.runs}
    for kind in ("apr", "sos"):
        folder = RECORD.parent / kind
        run, about = by_name[kind], json.loads((folder / "training.json").read_text("utf-8"))
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        assert run.sha256 == digest
        assert run.tokens == about["position"]["tokens"]
        assert list(run.seeds) == list(range(1, about["position"]["pool"] + 1))
        assert SHIPPED.within == SMALL
        assert run.start in by_name


def test_problems_of_the_test_are_of_the_range() -> None:
    for problem in unseen_problems():
        assert len(problem.numbers) == SMALL.size
        assert max(problem.numbers) <= SMALL.most
        assert 10 <= problem.target <= SMALL.target
        assert solvable(problem.numbers, problem.target)


def test_an_overlap_of_one_problem_under_another_seed_is_found() -> None:
    drawn = next(iter(problems(3, 1, SMALL)))
    turned = Problem(drawn.numbers[::-1], drawn.target)
    fresh = TOY.fresh_problems(3, seed=77)
    TOY.refuse_overlap(fresh, 77)
    with pytest.raises(Overlap, match="toy was trained on 1 of 4"):
        TOY.refuse_overlap([*fresh, turned], 77)


def test_what_a_run_held_out_it_did_not_draw() -> None:
    first = development_problems(1)[0]
    seed_20 = replace(RUN, first_seed=20, last_seed=20)
    assert first.key not in seed_20.keys(SMALL)
    assert first.key in replace(seed_20, held_out=()).keys(SMALL)


def test_a_record_keeps_one_run_of_each_name() -> None:
    longer = replace(RUN, last_seed=9)
    assert TOY.with_run(longer).runs == (longer,)
    assert TOY.with_run(replace(RUN, name="other")).runs[0] == RUN
