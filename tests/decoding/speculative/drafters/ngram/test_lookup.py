"""Prompt lookup against a search through the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.draft import DraftTree
from weft.decoding.speculative.drafters.ngram.lookup import LookupDrafter, Which


def searched(text: list[int], longest: int, shortest: int, which: Which, most: int) -> list[int]:
    """The same, slowly."""
    for length in range(longest, shortest - 1, -1):
        if length > len(text):
            continue
        ends = [
            end
            for end in range(length, len(text))
            if text[end - length : end] == text[len(text) - length :]
        ]
        if ends:
            copied = text[ends[-1] if which == "last" else ends[0] :]
            return (copied * (most // len(copied) + 1))[:most]
    return []


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=6),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(["first", "last"]),
    st.integers(0, 12),
)
def test_it_copies_what_a_search_finds(
    pieces: list[list[int]], a: int, b: int, which: Which, most: int
) -> None:
    longest, shortest = max(a, b), min(a, b)
    lookup, text = LookupDrafter(longest, shortest, which), []
    for piece in pieces:
        lookup.extend(piece)
        text += piece
        wanted = searched(text, longest, shortest, which, most)
        assert lookup.propose(most) == DraftTree.chain(wanted)


def test_a_quotation_is_copied_to_its_end() -> None:
    lookup = LookupDrafter()
    lookup.extend([7, 8, 9, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9])
    assert lookup.propose(5).tokens == (1, 2, 3, 4, 5)


def test_nothing_said_before_is_no_draft() -> None:
    lookup = LookupDrafter()
    lookup.extend([1, 2, 3])
    assert lookup.propose(8) == DraftTree()


@pytest.mark.parametrize("lengths", [(0, 0), (1, 2), (3, 0)])
def test_lengths_that_are_none_are_refused(lengths: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no n-grams"):
        LookupDrafter(*lengths)
