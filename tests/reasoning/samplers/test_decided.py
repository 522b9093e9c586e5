"""Cancelling what cannot change the vote, against every way the running samples may end."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from evals.reasoning.sampler_replay import RecordedSample, replay
from weft.reasoning.samplers.fixed import FixedSampler
from weft.reasoning.samplers.sampler import SampleState, decided_winner, ended_votes
from weft.reasoning.selection.vote import count_votes

KEYS = st.sampled_from(["a", "b", "c", None])
ENDED = st.tuples(KEYS, st.integers(1, 12))
RUNNING = st.integers(0, 12)


def winners(ended: list[tuple[str | None, int]], running: list[int]) -> set[str | None]:
    """Whoever may win: the running samples end with any answer, now or later."""
    endings = [
        [(key, tokens) for key in ("a", "b", "c", "new", None) for tokens in (n, n + 1, n + 50)]
        for n in running
    ]
    found = set()
    for ending in product(*endings):
        cast = enumerate([*ended, *ending])
        branches = [SampleState(i, "finished", tokens, key) for i, (key, tokens) in cast]
        tallies = count_votes(ended_votes(branches))
        found.add(tallies[0].key if tallies else None)
    return found


@given(st.lists(ENDED, max_size=7), st.lists(RUNNING, max_size=2))
def test_a_decided_vote_has_one_winner_whatever_comes(
    ended: list[tuple[str | None, int]], running: list[int]
) -> None:
    branches = [SampleState(i, "finished", tokens, key) for i, (key, tokens) in enumerate(ended)]
    branches += [SampleState(len(ended) + i, "running", tokens) for i, tokens in enumerate(running)]
    winner = decided_winner(branches)
    possible = winners(ended, running)
    if winner is not None:
        assert possible == {winner.key}
    counts = [*sorted((s.count for s in count_votes(ended_votes(branches))), reverse=True), 0, 0]
    if counts[0] - counts[1] > len(running):
        assert winner is not None


SAMPLES = st.lists(st.tuples(KEYS, st.integers(1, 30)), min_size=1, max_size=12)


@given(SAMPLES)
def test_cancelling_keeps_the_winner_of_the_full_vote(
    samples: list[tuple[str | None, int]],
) -> None:
    recorded = [RecordedSample(key, tokens) for key, tokens in samples]
    full = replay(FixedSampler(len(samples)), recorded)
    cut = replay(FixedSampler(len(samples), cancel_decided=True), recorded)
    assert [s.key for s in count_votes(ended_votes(full.pool.ended))[:1]] == [
        s.key for s in count_votes(ended_votes(cut.pool.ended))[:1]
    ]
    assert cut.critical_path_tokens <= full.critical_path_tokens
    assert cut.total_tokens <= full.total_tokens
    assert full.total_tokens == sum(tokens for _, tokens in samples)
    assert full.cancelled_tokens == 0


def test_a_lead_as_large_as_the_rest_decides_when_the_tie_is_safe() -> None:
    samples = [
        RecordedSample("a", 10),
        RecordedSample("a", 20),
        RecordedSample("b", 90),
        RecordedSample("b", 95),
    ]
    cut = replay(FixedSampler(4, cancel_decided=True), samples)
    assert cut.critical_path_tokens == 20
    assert cut.total_tokens == 10 + 3 * 20
    assert cut.cancelled_tokens == 40
    assert cut.stop.why == "decided: 2 of 4 agree, the 2 that ran could not win"


def test_answers_that_cannot_be_read_win_nothing() -> None:
    branches = [SampleState(0, "finished", 5, None), SampleState(1, "finished", 5, None)]
    assert decided_winner(branches) is None
    assert decided_winner([*branches, SampleState(2, "finished", 9, "a")]) is not None
