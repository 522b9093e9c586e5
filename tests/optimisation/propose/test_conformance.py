"""The conformance of all registered proposers; see `conformance`."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import weft
from tests.optimisation.propose.conformance import (
    PROGRAMS,
    ConformanceWorld,
    by_digest,
    check_installed,
    takes,
)
from tests.optimisation.propose.scripted import KINDS, scripted
from weft.optimisation.propose.registry import PROPOSERS
from weft.testing import FakeClock, FakeModel

NAMES = sorted(PROPOSERS)
KINDS_OF_AUTHORS = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)


def author(seed: int, kinds: list[str] | None) -> FakeModel | None:
    return None if kinds is None else scripted(f"author {seed}", kinds, "author")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(program="lost", kinds=None, most_calls=4, calls=None, seed=2)
@example(program="lost", kinds=["hostile"], most_calls=6, calls=None, seed=3)
@example(program="judged", kinds=["fitting"], most_calls=5, calls=None, seed=1)
@given(
    program=st.sampled_from(sorted(PROGRAMS)),
    kinds=st.none() | KINDS_OF_AUTHORS,
    most_calls=st.none() | st.integers(1, 40),
    calls=st.none() | st.integers(1, 60),
    seed=st.integers(0, 99),
)
def test_calls_are_those_made_and_never_more_than_said(
    name: str,
    program: str,
    kinds: list[str] | None,
    most_calls: int | None,
    calls: int | None,
    seed: int,
) -> None:
    """Whatever the model answers, the runs take and the budget is; no answer of it raises."""
    check_installed(name)
    options = {"most_calls": most_calls} if most_calls and takes(name, "most_calls") else {}
    world = ConformanceWorld(
        name, PROGRAMS[program], author(seed, kinds), options, calls=calls or 5_000, seed=seed
    )
    with world.begun() as study:
        world.clock.run(study.drive())
        assert study.requests <= (calls or 5_000)


@pytest.mark.parametrize("program", ["chain", "choices", "closed", "lost", "map"])
@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_repeatable_and_a_replay_of_the_record_calls_nothing(
    name: str, program: str
) -> None:
    check_installed(name)
    kinds = ["fitting", "fitting", "fitting", "misfit", "refused"]
    found = []
    for _ in range(2):
        world = ConformanceWorld(name, PROGRAMS[program], author(1, kinds))
        with world.begun() as study:
            found.append(world.clock.run(study.drive()))
    assert found[0] == found[1]
    made = study.requests
    with world.replayed() as again:
        assert world.clock.run(again.drive()) == found[1]
        assert again.requests == made


@pytest.mark.parametrize("name", NAMES)
def test_good_answers_give_candidates(name: str) -> None:
    """So that the other tests check something; a proposer may need one kind of workflow."""
    check_installed(name)
    for program, seed in product(("one", "choices", "chain", "map"), range(3)):
        world = ConformanceWorld(name, PROGRAMS[program], author(seed, ["fitting"]), seed=seed)
        with world.begun() as study:
            if any(each.candidates for each in world.clock.run(study.drive())):
                return
    raise AssertionError(f"{name} proposes nothing")


@pytest.mark.parametrize("kind", [*KINDS, None])
@pytest.mark.parametrize("name", NAMES)
def test_no_answer_of_the_proposer_model_raises(name: str, kind: str | None) -> None:
    check_installed(name)
    world = ConformanceWorld(name, PROGRAMS["chain"], author(3, None if kind is None else [kind]))
    with world.begun() as study:
        assert len(world.clock.run(study.drive(2))) == 2


@pytest.mark.parametrize("calls", [1, 23, 180])
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_study_stays_within_its_budget(name: str, calls: int) -> None:
    check_installed(name)
    for program in ("chain", "map"):
        clock, asked = FakeClock(), scripted("whole", ("fitting", "hostile"), "author")
        models = {
            each: scripted("whole", PROGRAMS[program].kinds, each) for each in ("small", "big")
        }
        result = clock.run(
            weft.optimise(
                weft.loads(PROGRAMS[program].text),
                PROGRAMS[program].rows,
                by_digest,
                models=models,
                proposers=[name],
                proposer_model=asked,
                calls_per_case=30,
                budget=calls,
                clock=clock,
            )
        )
        made = sum(len(model.requests) for model in (*models.values(), asked))
        assert result.spent.calls <= made <= calls  # what was under way at the end is not booked
