"""What is drafted from the places where a text stood before, and what is learned of that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.ngram_index import NgramIndex
from weft.serving.vllm.drafting.suffix_drafter import MatchAcceptance, SuffixMatchDrafter


def of(*texts: list[int], growing: bool = False) -> NgramIndex:
    concordance = NgramIndex(growing=growing)
    for text in texts:
        if growing:
            concordance.extend(text)
        else:
            concordance.add(text)
    return concordance


def drafted(
    guesser: SuffixMatchDrafter, sources: list[NgramIndex], text: list[int], most: int
) -> list[int]:
    return [step.token for step in guesser.guess(sources, text, most)]


@pytest.fixture
def guesser() -> SuffixMatchDrafter:
    return SuffixMatchDrafter(16, 0.05)


def test_what_followed_is_drafted_up_to_the_end_and_the_limit(guesser: SuffixMatchDrafter) -> None:
    source = of([1, 2, 3, 4, 5, 6])
    assert drafted(guesser, [source], [9, 1, 2, 3], 2) == [4, 5]
    assert drafted(guesser, [source], [9, 1, 2, 3], 8) == [4, 5, 6]
    assert drafted(guesser, [source], [9, 1, 7], 8) == []


def test_most_places_win_over_few_and_long_matches_over_short_ones(
    guesser: SuffixMatchDrafter,
) -> None:
    majority = of([1, 2, 7, 7], [1, 2, 8, 8], [1, 2, 8, 8])
    assert drafted(guesser, [majority], [0, 1, 2], 2) == [8, 8]
    longer = of([5, 4, 1, 2, 7, 7], [1, 2, 8, 8], [1, 2, 8, 8])
    assert drafted(guesser, [longer], [5, 4, 1, 2], 2) == [7, 7]


def test_the_closest_source_counts_first_at_a_tie(guesser: SuffixMatchDrafter) -> None:
    near, far = of([1, 2, 3]), of([1, 2, 4])
    assert drafted(guesser, [near, far], [1, 2], 1) == [3]
    assert drafted(guesser, [far, near], [1, 2], 1) == [4]


def test_a_text_that_repeats_itself_is_drafted_for_as_long_as_is_asked(
    guesser: SuffixMatchDrafter,
) -> None:
    text = [1, 2, 3, 1, 2, 3]
    assert drafted(guesser, [of(text, growing=True)], text, 7) == [1, 2, 3, 1, 2, 3, 1]


def test_it_goes_on_after_what_is_forced(guesser: SuffixMatchDrafter) -> None:
    source = of([1, 2, 3, 4, 5])
    steps = guesser.guess([source], [9, 1], 2, forced=[2, 3])
    assert [step.token for step in steps] == [4, 5]
    own = of([1, 2, 3, 9, 1], growing=True)
    assert [step.token for step in guesser.guess([own], [1, 2, 3, 9, 1], 4, forced=[2])] == [
        3,
        9,
        1,
        2,
    ]


def test_a_guess_that_is_never_right_is_not_made_any_more(guesser: SuffixMatchDrafter) -> None:
    source = of([1, 2, 3, 4, 5])
    for _ in range(1000):
        for step in guesser.guess([source], [1, 2], 4)[:1]:
            assert step.ground is not None
            guesser.chances.observe(step.ground, right=False)
    assert drafted(guesser, [source], [1, 2], 4) == []


def test_chances_follow_what_is_observed_and_forget() -> None:
    chances = MatchAcceptance()
    ground = chances.ground(3, 1, 2)
    assert chances.ground(3, 2, 2) != ground != chances.ground(4, 1, 2)
    assert chances.ground(100, 1, 1) == chances.ground(1000, 1, 1)
    for _ in range(3000):
        chances.observe(ground, right=True)
    assert chances[ground] > 0.95
    for _ in range(600):
        chances.observe(ground, right=False)
    assert chances[ground] < 0.4


@given(st.integers(2, 50), st.integers(1, 16), st.integers(1, 16))
def test_a_chance_is_one_before_and_after(length: int, agreeing: int, places: int) -> None:
    chances = MatchAcceptance()
    ground = chances.ground(length, min(agreeing, places), places)
    assert 0 < chances[ground] < 1
    longer = chances.ground(length + 1, min(agreeing, places), places)
    assert chances[longer] >= chances[ground]


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=20), max_size=3),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(1, 6),
)
def test_any_draft_is_short_enough_and_stood_somewhere(
    texts: list[list[int]], text: list[int], most: int
) -> None:
    sources = [of(text, growing=True), of(*texts)]
    draft = drafted(SuffixMatchDrafter(8, 0.0), sources, text, most)
    assert len(draft) <= most
    whole = [*text, *draft]
    for at in range(len(text), len(whole)):
        assert any(
            one[place : place + 2] == whole[at - 1 : at + 1]
            for one in (*texts, whole[:at])
            for place in range(len(one))
        )
