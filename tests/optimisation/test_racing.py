"""Races: the schedule, the bound, and which candidates survive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, log2
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import InputError
from weft.optimisation.candidates import Candidate, CaseId
from weft.optimisation.racing import RaceResult, bernstein_bound, halving_rounds, race

BASELINE = Candidate.of({"at": -1})
RACERS = [Candidate.of({"at": at}) for at in range(8)]


@given(st.integers(1, 60), st.integers(1, 40))
def test_rounds_halve_and_keep_to_the_evaluations(candidates: int, each: int) -> None:
    evaluations = candidates * each
    rounds = halving_rounds(candidates, evaluations)
    assert len(rounds) == max(1, ceil(log2(candidates)))
    assert rounds[0].candidates == candidates
    for one, other in pairwise(rounds):
        assert other.candidates == ceil(one.candidates / 2)
        assert other.cases >= one.cases
    if each >= len(rounds):
        assert sum(one.candidates * one.cases for one in rounds) <= evaluations


def test_the_bound_holds_as_often_as_it_says() -> None:
    random, held = Random(1), 0
    for _ in range(300):
        drawn = [random.choice((-1.0, 0.0, 0.0, 1.0)) for _ in range(40)]
        held += bernstein_bound(drawn, span=2.0, chance=0.1) >= 0
    assert held >= 270


def raced(
    chances: Mapping[Candidate, float], cases: int, evaluations: int
) -> tuple[RaceResult, list[tuple[Candidate, CaseId]]]:
    asked: list[tuple[Candidate, CaseId]] = []

    async def measure(
        candidates: Sequence[Candidate], batch: Sequence[CaseId]
    ) -> Mapping[Candidate, Sequence[float]]:
        asked.extend((each, case) for each in candidates for case in batch)
        return {
            each: [float(Random(f"{case}").random() < chances[each]) for case in batch]
            for each in candidates
        }

    racers = [each for each in chances if each != BASELINE]
    ended = asyncio.run(race(BASELINE, racers, range(cases), measure, evaluations=evaluations))
    return ended, asked


def test_the_best_wins_and_no_case_is_measured_twice() -> None:
    chances = {BASELINE: 0.5} | {each: 0.3 + 0.08 * at for at, each in enumerate(RACERS)}
    ended, asked = raced(chances, 400, 8 * 120)
    assert ended.survivors == [RACERS[-1], BASELINE]
    assert len(asked) == len(set(asked)) == ended.evaluations
    assert all(len(values) <= len(ended.values[BASELINE]) for values in ended.values.values())
    assert ended.dropped.keys() == set(RACERS[:-1])


def test_a_hopeless_candidate_leaves_by_the_bound() -> None:
    chances = {BASELINE: 0.5, RACERS[0]: 0.95, RACERS[1]: 0.02, RACERS[2]: 0.9, RACERS[3]: 0.9}
    ended, _ = raced(chances, 1_000, 4 * 400)
    assert ended.dropped[RACERS[1]] == (1, "bound")


def test_the_baseline_wins_a_tie_and_is_never_dropped() -> None:
    ended, _ = raced({BASELINE: 0.5, RACERS[0]: 0.5, RACERS[1]: 0.5}, 60, 90)
    assert ended.survivors[0] == BASELINE
    ended, _ = raced({BASELINE: 0.0, RACERS[0]: 1.0}, 60, 60)
    assert ended.survivors == [RACERS[0], BASELINE]


def test_a_race_ends_with_its_cases_and_without_candidates() -> None:
    ended, asked = raced({BASELINE: 0.5} | dict.fromkeys(RACERS, 0.5), 5, 10_000)
    assert max(len(values) for values in ended.values.values()) == 5
    assert len(asked) == 5 * 9
    ended, asked = raced({BASELINE: 0.5}, 5, 10)
    assert (ended.survivors, asked) == ([BASELINE], [])


def test_races_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="cannot race"):
        halving_rounds(8, 7)
    with pytest.raises(InputError, match="differences"):
        bernstein_bound([], span=1.0, chance=0.1)
