"""Minibatches in epochs, the growth of sums of scores, and budgets of observations."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimisation.prompt_program import PromptContext, prompt_option, state_of
from weft.evaluation.case import Case
from weft.optimisation.propose.context import ObservedRun
from weft.optimisation.propose.minibatch import ObservationBudget, growth, minibatch


@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 9))
def test_each_epoch_has_every_case_once(count: int, size: int, seed: int) -> None:
    cases = [Case(str(at), {}) for at in range(count)]
    batches = [minibatch(cases, seed, step, size) for step in range(3 * count)]
    assert batches == [minibatch(cases, seed, step, size) for step in range(3 * count)]
    for batch in batches:
        ids = [case.id for case in batch]
        assert len(set(ids)) == len(ids) <= size
        assert bool(ids) == bool(count)
    if count and count % size == 0:
        steps = count // size
        for epoch in range(3):
            seen = [case.id for batch in batches[epoch * steps :][:steps] for case in batch]
            assert sorted(seen) == sorted(case.id for case in cases)


def run(case: str, score: float | None) -> ObservedRun:
    return ObservedRun(Case(case, {}), 0, {}, score, "", ())


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ([0.0, 1.0], [1.0, 1.0], 1.0),
        ([0.0, 1.0], [1.0, 0.0], 0.0),
        ([0.1, 0.2], [0.3, 0.0], 0.0),
        ([None, 0.5], [1.0, 0.5], 0.0),
        ([0.5, 0.5], [None, 1.0], 0.0),
        ([0.0, 0.0, 0.0], [0.5], 0.5),
        ([], [], 0.0),
    ],
)
def test_growth(old: list[float | None], new: list[float | None], found: float) -> None:
    runs = [[run(str(at), score) for at, score in enumerate(each)] for each in (old, new)]
    assert growth(*runs) == pytest.approx(found, abs=0)


@pytest.mark.parametrize("left", range(0, 30, 3))
def test_side_by_side_runs_stay_within_the_budget_on_the_same_cases(left: int) -> None:
    own = PromptContext()
    state = state_of(own)
    text = "Of {{ thing }} by {{ facts }}"
    others = [
        state.baseline.replace("answer.prompt", prompt_option("answer", f"{text}{at}"))
        for at in range(3)
    ]
    budget = ObservationBudget(own, left)
    found = asyncio.run(budget.side_by_side(others, own.train))
    assert own.calls <= left
    assert budget.left == left - own.calls
    assert len({tuple(run.case.id for run in runs) for runs in found}) == 1
    assert len(found[0]) == left // 9
