"""Votes: ties are broken in one order, whatever order the votes come in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.reasoning.selection.vote import Vote, count_votes, shortest_majority

BALLOTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.sampled_from([None, 0.5, 1.0])),
    max_size=9,
).map(lambda cast: [Vote(i, key, n, score=score) for i, (key, n, score) in enumerate(cast)])


@given(BALLOTS, st.randoms(use_true_random=False))
def test_the_order_of_ballots_does_not_matter(votes: list[Vote], random: object) -> None:
    shuffled = list(votes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for count in (count_votes, shortest_majority):
        assert [s.key for s in count(votes)] == [s.key for s in count(shuffled)]
    assert sum(tally.count for tally in count_votes(votes)) == len(votes)


def test_ties_go_to_the_score_then_to_the_shorter_then_to_the_first() -> None:
    scored = [Vote(0, "a", 1, score=0.2), Vote(1, "b", 9, score=0.3)]
    assert count_votes(scored)[0].key == "b"
    assert count_votes([Vote(0, "a", 9), Vote(1, "b", 5)])[0].key == "b"
    assert count_votes([Vote(0, "a", 9), Vote(1, "b", 5)], "first")[0].key == "a"
    assert count_votes([Vote(1, "b", 5), Vote(0, "a", 5)])[0].key == "a"


def test_the_best_ballot_stands_for_its_answer() -> None:
    votes = [Vote(0, "a", 9), Vote(1, "a", 4), Vote(2, "a", 6, score=1.0)]
    assert count_votes(votes[:2])[0].best == 1
    assert count_votes(votes)[0].best == 2


def test_weights_outvote_counts() -> None:
    votes = [Vote(0, "a", 1, 3.0), Vote(1, "b", 1, 1.0), Vote(2, "b", 1, 1.0)]
    assert [tally.key for tally in count_votes(votes)] == ["a", "b"]


def test_the_shortest_majority_prefers_many_short_ones() -> None:
    votes = [Vote(0, "long", 10_000), Vote(1, "short", 100)]
    tallies = shortest_majority(votes)
    assert tallies[0].key == "short"
    assert tallies[0].weight == pytest.approx(1 / math.log(100))
    assert shortest_majority([Vote(0, "a", 1)])[0].weight == 1
