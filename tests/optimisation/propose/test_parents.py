"""The front by case against a slow oracle, draws from it, and merges."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from weft.optimisation.candidates import Candidate, CaseOutcome, SearchState
from weft.optimisation.propose.parents import case_front, drawn, measured, merged, merges

KNOBS = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1)}
BASE = Candidate.of(dict.fromkeys(KNOBS, 0))
CANDIDATES = st.builds(
    Candidate.of, st.fixed_dictionaries({k: st.sampled_from(v) for k, v in KNOBS.items()})
)


@st.composite
def states(draw: st.DrawFn) -> SearchState:
    """Up to three blocks of some candidates, with scores 0, 1 and 2, some of them missing."""
    blocks = []
    for _ in range(draw(st.integers(0, 3))):
        own = [BASE, *draw(st.lists(CANDIDATES, max_size=4))]
        cases = draw(st.integers(1, 4))
        scored = [draw(st.integers(0, 9)) > 0 for _ in range(cases)]
        blocks.append(
            {
                each: [
                    CaseOutcome(draw(st.integers(0, 2)) if one else 0, scored=one or each != BASE)
                    for one in scored
                ]
                for each in dict.fromkeys(own)
            }
        )
    return SearchState(BASE, KNOBS, blocks, BASE)


def slow_front(state: SearchState) -> dict[Candidate, int]:
    """By sets of cases and exact means."""
    wins: dict[Candidate, set[tuple[int, int]]] = {}
    gains: dict[Candidate, list[Fraction]] = {}
    for number, block in enumerate(state.blocks):
        for at in range(len(block[BASE])):
            base = block[BASE][at]
            for each, outcomes in block.items():
                gains.setdefault(each, []).append(Fraction(outcomes[at].score - base.score))
                best = all(outcomes[at].score >= other[at].score for other in block.values())
                if best and base.scored:
                    wins.setdefault(each, set()).add((number, at))
    order = [each for block in state.blocks for each in block]
    order = [each for each in dict.fromkeys(order) if each in wins]
    alive = set(order)
    mean = {each: sum(gains[each]) / len(gains[each]) for each in alive}
    for each in sorted(order, key=lambda one: (mean[one], order.index(one))):
        others = set().union(*(wins[other] for other in alive if other != each))
        if wins[each] <= others:
            alive.discard(each)
    return {each: len(wins[each]) for each in order if each in alive}


@given(states())
def test_the_front_is_that_of_the_oracle(state: SearchState) -> None:
    assert list(case_front(state).items()) == list(slow_front(state).items())


@given(states())
def test_the_front_wins_every_case_and_needs_each_member(state: SearchState) -> None:
    front = case_front(state)
    cases = [
        {each for each, found in block.items() if found[at].score == max_of(block, at)}
        for block in state.blocks
        for at in range(len(block[BASE]))
        if block[BASE][at].scored
    ]
    assert all(winners & front.keys() for winners in cases)
    for each in front:
        assert any(winners & front.keys() == {each} for winners in cases)
    assert bool(front) == bool(cases)


def max_of(block: object, at: int) -> float:
    return max(found[at].score for found in block.values())  # type: ignore[attr-defined]


def test_members_are_drawn_in_proportion_to_the_cases_that_they_win() -> None:
    front = {BASE: 1, BASE.replace("a", 1): 3, BASE.replace("b", 1): 6}
    random = Random(5)
    counts = Counter(drawn(front, random) for _ in range(10_000))
    for each, won in front.items():
        assert abs(counts[each] / 10_000 - won / 10) < 0.02
    assert drawn({}, random) is None


@given(CANDIDATES, CANDIDATES)
def test_a_merge_has_what_left_the_baseline(better: Candidate, other: Candidate) -> None:
    made = dict(merged(better, other, BASE).settings)
    for knob in KNOBS:
        one, two = dict(better.settings)[knob], dict(other.settings)[knob]
        assert made[knob] == (one if one != 0 else two)


@given(states(), st.integers(0, 9))
def test_merges_are_new_and_of_two_members_that_differ_from_the_baseline(
    state: SearchState, seed: int
) -> None:
    front = case_front(state)
    found = list(merges(state, front, Random(seed)))
    assert found == list(merges(state, front, Random(seed)))
    assert len(set(found)) == len(found)
    assert not set(found) & set(measured(state))
    members = [each for each in front if each != BASE]
    possible = {merged(one, two, BASE) for one in members for two in members if one != two}
    assert set(found) <= possible


def test_where_both_changed_a_knob_the_better_one_decides() -> None:
    one = BASE.replace("a", 1).replace("b", 1)
    two = BASE.replace("a", 2).replace("c", 1)
    scores = {BASE: [0, 0, 0], one: [2, 0, 1], two: [0, 1, 0]}
    block = {each: [CaseOutcome(score) for score in found] for each, found in scores.items()}
    state = SearchState(BASE, KNOBS, [block], BASE)
    (found,) = merges(state, case_front(state), Random(0))
    assert dict(found.settings) == {"a": 1, "b": 1, "c": 1}
