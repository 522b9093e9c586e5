"""A concordance against looking at every place of every text."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from weft.serving.vllm.drafting.ngram_index import NgramIndex, Occurrence

LONGEST = 6
TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=14), max_size=2)


def naive(texts: Sequence[Sequence[int]], end: Sequence[int]) -> list[tuple[int, int]]:
    """What followed each run that `end` ends with, and the run's length: of one token if no two."""
    found = []
    for text in texts:
        for place in range(1, len(text)):
            length = 0
            while (
                length < min(len(end), place, LONGEST)
                and text[place - 1 - length] == end[-1 - length]
            ):
                length += 1
            if length:
                found.append((text[place], length))
    longer = [each for each in found if each[1] > 1]
    return longer or found


def told(found: Sequence[Occurrence]) -> list[tuple[int, int]]:
    return [(each.text[each.place], each.length) for each in found]


@given(TEXTS, st.lists(st.integers(0, 3), max_size=10))
def test_it_finds_every_place_and_the_length_of_the_match(
    texts: list[list[int]], end: list[int]
) -> None:
    concordance = NgramIndex()
    for text in texts:
        concordance.add(text)
    found = told(list(concordance.occurrences(end, LONGEST, 31)))
    assert sorted(found) == sorted(naive(texts, end))
    assert len(concordance) == sum(map(len, texts)) + len(texts)


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), max_size=6))
def test_a_text_may_come_in_pieces(pieces: list[list[int]]) -> None:
    concordance = NgramIndex(growing=True)
    for piece in pieces:
        concordance.extend(piece)
    text = [token for piece in pieces for token in piece]
    found = list(concordance.occurrences(text, LONGEST, 31))
    assert sorted(told(found)) == sorted(naive([text], text))
    assert all(each.growing for each in found)


def test_only_the_latest_places_are_kept_and_they_come_first() -> None:
    concordance = NgramIndex()
    for following in range(10, 200):
        concordance.add([1, 2, following])
    found = told(list(concordance.occurrences([1, 2], LONGEST, 5)))
    assert found == [(following, 2) for following in (199, 198, 197, 196, 195)]
    assert len(list(concordance.occurrences([1, 2], LONGEST, 1000))) < 64


def test_runs_never_reach_over_the_end_of_a_text() -> None:
    concordance = NgramIndex()
    concordance.add([1, 2])
    concordance.add([3, 1, 2, 9])
    assert told(list(concordance.occurrences([2, 3], LONGEST, 9))) == [(1, 1)]
    assert told(list(concordance.occurrences([1, 2], LONGEST, 9))) == [(9, 2)]
    assert told(list(concordance.occurrences([2], LONGEST, 9))) == [(9, 1)]
    assert list(concordance.occurrences([], LONGEST, 9)) == []
