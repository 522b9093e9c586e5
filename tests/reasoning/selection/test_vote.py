"""Votes: ties are broken in one order, whatever order the ballots come in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.reasoning.selection.vote import Vote, shortest_majority, tally

BALLOTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.sampled_from([None, 0.5, 1.0])),
    max_size=9,
).map(lambda cast: [Vote(i, key, n, score=score) for i, (key, n, score) in enumerate(cast)])


@given(BALLOTS, st.randoms(use_true_random=False))
def test_the_order_of_ballots_does_not_matter(ballots: list[Vote], random: object) -> None:
    shuffled = list(ballots)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for count in (tally, shortest_majority):
        assert [s.key for s in count(ballots)] == [s.key for s in count(shuffled)]
    assert sum(standing.count for standing in tally(ballots)) == len(ballots)


def test_ties_go_to_the_score_then_to_the_shorter_then_to_the_first() -> None:
    scored = [Vote(0, "a", 1, score=0.2), Vote(1, "b", 9, score=0.3)]
    assert tally(scored)[0].key == "b"
    assert tally([Vote(0, "a", 9), Vote(1, "b", 5)])[0].key == "b"
    assert tally([Vote(0, "a", 9), Vote(1, "b", 5)], "first")[0].key == "a"
    assert tally([Vote(1, "b", 5), Vote(0, "a", 5)])[0].key == "a"


def test_the_best_ballot_stands_for_its_answer() -> None:
    ballots = [Vote(0, "a", 9), Vote(1, "a", 4), Vote(2, "a", 6, score=1.0)]
    assert tally(ballots[:2])[0].best == 1
    assert tally(ballots)[0].best == 2


def test_weights_outvote_counts() -> None:
    ballots = [Vote(0, "a", 1, 3.0), Vote(1, "b", 1, 1.0), Vote(2, "b", 1, 1.0)]
    assert [standing.key for standing in tally(ballots)] == ["a", "b"]


def test_the_shortest_majority_prefers_many_short_ones() -> None:
    ballots = [Vote(0, "long", 10_000), Vote(1, "short", 100)]
    standings = shortest_majority(ballots)
    assert standings[0].key == "short"
    assert standings[0].weight == pytest.approx(1 / math.log(100))
    assert shortest_majority([Vote(0, "a", 1)])[0].weight == 1
