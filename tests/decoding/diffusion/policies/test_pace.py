"""Paces: what is due in each step comes to all slots, with something due in every step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.diffusion.policies.fixed_pace import CommitPace, EvenSteps, EveryStep, FadingPace


def steps(pace: CommitPace, slots: int) -> list[int]:
    at_work, left, due = pace.begin(slots), slots, []
    while left:
        due.append(at_work.due(left))
        left -= due[-1]
    return due


def test_a_split_is_llada_s() -> None:
    assert steps(EvenSteps(3), 8) == [3, 3, 2]
    assert steps(EvenSteps(8), 8) == [1] * 8
    assert steps(EvenSteps(12), 8) == [1] * 8  # never more steps than slots
    assert steps(EvenSteps(1), 8) == [8]
    assert steps(EveryStep(3), 8) == [3, 3, 2]


def test_fading_is_dream_s_without_its_idle_steps() -> None:
    # rounding leaves the first step idle, and the last one writes two, however many there are
    assert steps(FadingPace(), 6) == [1, 1, 1, 1, 2]
    assert steps(FadingPace(least=1), 6) == [1] * 6
    assert steps(FadingPace(2), 10) == [4, 6]
    assert steps(FadingPace(512), 3) == [1, 2]
    assert FadingPace(2).shares(9) == pytest.approx([0.4995, 1.0])


PACES = st.one_of(
    st.builds(EveryStep, st.integers(1, 9)),
    st.builds(EvenSteps, st.integers(1, 40)),
    st.builds(FadingPace, st.integers(0, 40), st.floats(1e-4, 0.9), st.integers(0, 1)),
)


@given(PACES, st.integers(1, 64))
def test_every_step_has_something_due_and_the_bound_holds(pace: CommitPace, slots: int) -> None:
    due = steps(pace, slots)

    assert sum(due) == slots
    assert min(due) >= 1
    assert len(due) <= pace.most_forwards(slots)


@given(PACES, st.integers(1, 20), st.integers(1, 60))
def test_something_is_due_even_when_others_hold_it_back(
    pace: CommitPace, slots: int, passes: int
) -> None:
    at_work = pace.begin(slots)

    assert all(1 <= at_work.due(slots) <= slots for _ in range(passes))
