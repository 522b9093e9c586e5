"""Trees that grow where the draft model is surest, and the threshold that ends them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafters.model.draft_model import DraftedToken
from weft.decoding.speculative.drafters.model.llmcad import AdaptiveThreshold, ConfidenceTree


def law(text: list[int]) -> np.ndarray:
    return SamplingParams(1.0).distribution(Paper().logits(text).astype(np.float32))


def grown(
    seed: int, most: int, threshold: float, width: int, seeds: int = 0
) -> tuple[ConfidenceTree, int]:
    """A tree on the paper's laws, with a chain of the likeliest tokens to begin with."""
    text, chain = [seed], []
    for _ in range(seeds):
        token = int(law(text).argmax())
        chain.append(DraftedToken(token, float(law(text)[token])))
        text.append(token)
    growth, readings = ConfidenceTree(chain, most, threshold, width), 0
    while growth.grows:
        tree = growth.tree
        paths = [[], *([tree.tokens[n] for n in tree.path(node)] for node in range(len(tree)))]
        logits = np.array([Paper().logits([seed, *path]) for path in paths], np.float32)
        growth.feed(logits, readings)
        readings += 1
    return growth, readings


def confidence(tree: DraftTree, node: int, seed: int) -> float:
    """The probability of the whole path to a node, from the laws themselves."""
    found, text = 1.0, [seed]
    for above in tree.path(node):
        found *= law(text)[tree.tokens[above]]
        text.append(tree.tokens[above])
    return found


@given(
    st.integers(0, 200),
    st.integers(1, 12),
    st.sampled_from([1e-6, 0.05, 0.3, 0.9]),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_nodes_are_likely_and_few(
    seed: int, most: int, threshold: float, width: int, seeds: int
) -> None:
    growth, readings = grown(seed, most, threshold, width, seeds)
    tree = growth.tree
    assert 1 <= len(tree) <= most
    assert readings <= len(tree) + 1, "the last one may have found nothing to add"
    for node in range(min(seeds, most), len(tree)):
        assert len(tree) == 1 or confidence(tree, node, seed) >= threshold
    path, node = [], ROOT
    while children := tree.children(node):
        node = max(children, key=lambda child: confidence(tree, child, seed))
        path.append(tree.tokens[node])
    assert [chosen.token for chosen in growth.best] == path


def test_one_node_a_reading_makes_the_tree_of_the_likeliest_paths() -> None:
    for seed in range(20):
        growth, readings = grown(seed, 8, 1e-9, 1)
        found = sorted((confidence(growth.tree, node, seed) for node in range(8)), reverse=True)
        waiting, wanted = [(1.0, [seed])], list[float]()
        for _ in range(9):  # the root first
            waiting.sort(key=lambda each: each[0])
            probability, text = waiting.pop()
            wanted.append(probability)
            after = law(text)
            waiting += [(probability * after[token], [*text, token]) for token in range(WORDS)]
        assert found == pytest.approx(wanted[1:])
        assert readings == 8
        assert grown(seed, 8, 1e-9, 4)[1] < 8, "fewer readings, where more is added at a time"


def test_a_draft_from_before_is_where_it_begins() -> None:
    growth, _ = grown(3, 12, 1e-9, 2, seeds=4)
    chain = growth.tree.tokens[:4]
    assert growth.tree.parents[:4] == (ROOT, 0, 1, 2)
    text = [3]
    for token in chain:
        assert token == int(law(text).argmax())
        text.append(token)
    assert len(growth.best) >= 4


def test_no_nodes_are_asked_for() -> None:
    growth = ConfidenceTree([DraftedToken(1, 0.9)], 0, 0.01, 2)
    assert not growth.grows
    assert growth.tree == DraftTree()
    assert growth.best == []


def test_the_threshold_follows_the_formula() -> None:
    fallback = AdaptiveThreshold(0.01)
    fallback.learn(0.5, 4, 4)
    assert fallback.threshold == 0.005, "all right: half"
    fallback.learn(0.25, 4, 2)
    assert fallback.threshold == pytest.approx(0.005 / 0.25**0.5), "wrong: over T^(share of wrong)"
    fallback.learn(0.3, 0, 0)
    assert fallback.threshold == pytest.approx(0.01), "nothing drafted, nothing learnt"


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9), st.integers(0, 9)), max_size=60))
def test_the_threshold_stays_a_probability(seen: list[tuple[float, int, int]]) -> None:
    fallback = AdaptiveThreshold()
    for probability, drafted, right in seen:
        fallback.learn(probability, drafted, min(right, drafted))
        assert 0.0 < fallback.threshold < 1.0
