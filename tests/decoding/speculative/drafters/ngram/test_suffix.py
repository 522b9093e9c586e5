"""Suffix tries against counting by hand; what they draft; what they forget."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.drafters.ngram.suffix import (
    SharedTexts,
    SuffixDrafter,
    SuffixOptions,
    SuffixTrie,
    TrieNode,
    likeliest_continuation,
)

texts = st.lists(st.lists(st.integers(0, 2), max_size=14), max_size=6)
DEPTH = 4


def counted(found: list[list[int]]) -> Counter[tuple[int, ...]]:
    return Counter(
        tuple(text[start : start + length])
        for text in found
        for start in range(len(text))
        for length in range(1, min(DEPTH, len(text) - start) + 1)
    )


def runs(node: TrieNode, before: tuple[int, ...] = ()) -> dict[tuple[int, ...], int]:
    found = {}
    for token, child in node.children.items():
        found[(*before, token)] = child.count
        found |= runs(child, (*before, token))
    return found


@given(texts)
def test_a_trie_counts_every_run(found: list[list[int]]) -> None:
    trie = SuffixTrie(DEPTH)
    for text in found:
        trie.add(text)
    assert runs(trie.root) == dict(counted(found))
    assert trie.nodes == len(counted(found))


@given(texts, st.integers(0, 6))
def test_what_is_removed_was_never_there(found: list[list[int]], gone: int) -> None:
    trie = SuffixTrie(DEPTH)
    for text in found:
        trie.add(text)
    for text in found[:gone]:
        trie.remove(text)
    assert runs(trie.root) == dict(counted(found[gone:]))
    assert trie.nodes == len(counted(found[gone:]))


@given(texts, st.integers(1, 40))
def test_shared_texts_stay_within_their_bound_and_the_oldest_go(
    found: list[list[int]], nodes: int
) -> None:
    shared = SharedTexts(DEPTH, nodes)
    for text in found:
        shared.remember(text)
        assert shared.trie.nodes <= nodes
    left = found[len(found) - len(shared) :]
    assert runs(shared.trie.root) == dict(counted(left))


@given(texts, st.integers(0, 8), st.booleans())
def test_a_draft_is_a_prefix_closed_set_with_its_probabilities(
    found: list[list[int]], most: int, tree: bool
) -> None:
    trie = SuffixTrie(DEPTH)
    for text in found:
        trie.add(text)
    trie.root.count = sum(child.count for child in trie.root.children.values())
    guess = likeliest_continuation(trie.root, most, 0.1, tree=tree)
    expected = 0.0
    for node in range(len(guess.tree)):
        here, probability = trie.root, 1.0
        for step in guess.tree.path(node):
            child = here.children[guess.tree.tokens[step]]
            probability *= child.count / here.count
            here = child
        assert probability >= 0.1 - 1e-12
        expected += probability
    assert guess.expected == pytest.approx(expected)
    assert len(guess.tree) <= most
    if not tree:
        assert guess.tree.parents == tuple(range(-1, len(guess.tree) - 1))


def test_a_match_is_followed_as_far_as_it_is_long() -> None:
    drafter = SuffixDrafter(SuffixOptions(factor=1.0))
    drafter.extend([1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3])
    assert drafter.propose(16).tokens == (4, 5, 6)
    assert drafter.propose(2).tokens == (4, 5)


def test_others_help_where_the_text_itself_says_nothing() -> None:
    shared = SharedTexts()
    shared.remember([5, 6, 7, 8])
    shared.remember([5, 6, 7, 8])
    drafter = SuffixDrafter(shared=shared)
    drafter.extend([0, 5, 6])
    assert drafter.propose(8).tokens == (7, 8)
    assert drafter.guess(8).expected == 2.0


def test_two_sequences_share_nothing_but_what_they_are_given() -> None:
    one, other = SuffixDrafter(), SuffixDrafter()
    one.extend([1, 2, 1])
    other.extend([1])
    assert one.propose(4).tokens == (2,)
    assert len(other.propose(4)) == 0


def test_a_trie_that_knows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="depth 1"):
        SuffixTrie(1)
