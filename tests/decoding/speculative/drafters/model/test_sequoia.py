"""Trees drawn without replacement: their law, their shape, and the text they leave alone."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.speculative.drafters.model.decoding import LIMITS, Rows, decoded, plain
from tests.decoding.speculative.drafters.model.paper import Paper
from tests.decoding.speculative.toy import WORDS
from weft.decoding.sampling import SamplingParams
from weft.decoding.speculative.draft import ROOT, DraftTree
from weft.decoding.speculative.drafter import DraftRequest, propose_all
from weft.decoding.speculative.drafters.model.draft_cache import DraftCache
from weft.decoding.speculative.drafters.model.sequoia import SequoiaMethod, TreeSizes
from weft.decoding.speculative.drafters.model.sequoia_tree import (
    AcceptanceByRank,
    ChildrenWithoutReplacement,
    TopChildren,
    TreeShapeSearch,
)
from weft.decoding.speculative.loop import DecodeLimits

shapings = st.sampled_from(
    [SamplingParams(0.0), SamplingParams(0.8, top_p=0.9), SamplingParams(1.3)]
)


def method(
    paper: Paper, sizes: TreeSizes | None = None, *, sample: bool = False, kept: Path | None = None
) -> SequoiaMethod:
    sizes = sizes or TreeSizes(10, 4)
    return SequoiaMethod(paper, DraftCache(paper, WORDS), WORDS, sizes, sample=sample, path=kept)


@given(shapings, st.integers(0, 2**32), st.sampled_from([0.0, 1.0, 9.0]), st.integers(0, 12))
@settings(max_examples=40)
def test_trees_of_any_model_leave_the_text_alone(
    shaping: SamplingParams, seed: int, noise: float, nodes: int
) -> None:
    limits = DecodeLimits(30)
    text, counters = decoded(method(Paper(noise), TreeSizes(nodes, 4)), shaping, seed, limits)
    assert text == plain(shaping, seed, limits)
    assert counters.accepted + counters.forwards == counters.tokens


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_greedy_text_is_left_alone_by_drawn_trees_too(seed: int) -> None:
    text, _ = decoded(method(Paper(1.0), sample=True), SamplingParams(0.0), seed)
    assert text == plain(SamplingParams(0.0), seed)


def test_a_draft_model_that_agrees_is_accepted_to_the_bottom() -> None:
    text, counters = decoded(method(Paper(0.0), TreeSizes(4, 4)), SamplingParams(0.0), 3)
    assert counters.forwards < len(text) / 2.0
    assert counters.chances[0] == 1.0


def test_drawn_trees_of_the_same_law_are_always_accepted_at_the_first_child() -> None:
    shaping = SamplingParams(1.3)
    sequoia = method(Paper(0.0), sample=True)
    drafter = sequoia.begin(DraftRequest(shaping, 5))
    drafter.extend((1, 2, 3))
    (draft,) = sequoia.propose([(drafter, 10)])
    assert not isinstance(draft, BaseException)
    assert len(draft.tree) == 10
    for node, proposal in draft.tree.proposals.items():
        text = [1, 2, 3, *(draft.tree.tokens[above] for above in draft.tree.path(node))]
        law = shaping.distribution(Paper(0.0).logits(text).astype(np.float32))
        assert proposal.distribution == pytest.approx(law)
        assert proposal.kind == "without_replacement"


def test_children_come_as_draws_without_replacement() -> None:
    shaping, logits = SamplingParams(1.0), np.log(np.array([0.5, 0.3, 0.2], np.float32))
    found: Counter[tuple[int, ...]] = Counter()
    draws = 20_000
    for seed in range(draws):
        tokens, law = ChildrenWithoutReplacement(shaping, seed, 4).choose(logits, 2, 7, 0)
        assert law == pytest.approx([0.5, 0.3, 0.2, 0.0])
        found[tuple(tokens)] += 1
    weights = [0.5, 0.3, 0.2]
    for first, second in permutations(range(3), 2):
        probability = weights[first] * weights[second] / (1 - weights[first])
        spread = (draws * probability * (1 - probability)) ** 0.5
        assert abs(found[first, second] - draws * probability) < 4 * spread


def test_no_more_children_than_there_are_tokens() -> None:
    tokens, _ = ChildrenWithoutReplacement(SamplingParams(1.0, top_k=2), 0, 5).choose(
        np.arange(5, dtype=np.float32), 4, 0, 0
    )
    assert sorted(tokens) == [3, 4]
    assert TopChildren().choose(np.array([1, 3, 3, 0], np.float32), 3, 0, 0)[0] == [1, 2, 0]
    assert TopChildren().choose(np.array([1, 3, 3, 0], np.float32), 9, 0, 0)[0] == [1, 2, 0, 3]


def test_the_shape_of_the_draft_is_the_best_for_its_ranks() -> None:
    sequoia = method(Paper(0.5), TreeSizes(9, 3))
    drafter = sequoia.begin()
    drafter.extend((1, 2, 3))
    (draft,) = sequoia.propose([(drafter, 9)])
    assert not isinstance(draft, BaseException)
    expected = TreeShapeSearch(sequoia.ranks[True].vector).best(9, 3)
    assert sorted(_paths(draft.tree)) == sorted(
        _paths(DraftTree(tuple(range(9)), expected.parents))
    )


def _paths(tree: DraftTree) -> list[tuple[int, ...]]:
    """Of every node: its rank among its siblings, and those above it."""
    rank = {
        node: at
        for parent in range(ROOT, len(tree))
        for at, node in enumerate(tree.children(parent))
    }
    return [tuple(rank[above] for above in tree.path(node)) for node in range(len(tree))]


def test_where_drafting_does_not_pay_nothing_is_drafted() -> None:
    dear = TreeSizes(9, 3, draft_s=5.0, target_s=lambda tokens: 1.0 + 0.01 * tokens)
    paper = Paper(0.0)
    text, counters = decoded(method(paper, dear), SamplingParams(0.0), 3)
    assert counters.drafted == 0
    assert paper.passes == []
    assert text == plain(SamplingParams(0.0), 3)


def test_rows_of_a_step_are_drafted_together() -> None:
    paper = Paper(1.0)
    prompts = [(1, 2, 3), (2, 2), (4, 3, 2, 1, 0)]
    shaping = SamplingParams(0.8, top_p=0.9)
    texts = Rows(method(paper), prompts, shaping).run(LIMITS)
    assert texts == [plain(shaping, row, LIMITS, prompt) for row, prompt in enumerate(prompts)]
    assert max(map(len, paper.passes)) == 3


def test_a_model_that_fails_is_told_to_all_rows() -> None:
    paper = Paper()
    sequoia = method(paper)
    drafters = [sequoia.begin(), sequoia.begin()]
    for drafter in drafters:
        drafter.extend((1, 2))
    paper.fails_at = 0
    assert all(
        isinstance(each, RuntimeError) for each in propose_all(sequoia, [(d, 4) for d in drafters])
    )


def test_a_text_beyond_the_draft_models_context_is_not_drafted() -> None:
    sequoia = method(Paper(context_tokens=12))
    drafter = sequoia.begin()
    drafter.extend((1, 2, 3, 4, 1))
    (draft,) = sequoia.propose([(drafter, 4)])
    assert not isinstance(draft, BaseException)
    assert len(draft.tree) == 0


def test_ranks_are_counted_where_they_were_tested() -> None:
    ranks = AcceptanceByRank(3)
    before = ranks.vector
    tree = DraftTree((5, 6, 7, 8), (ROOT, ROOT, 1, 1))
    for _ in range(300):
        ranks.observe(tree, (6, 8, 9))  # the second child, then its second, then the bonus
    first, second, third = ranks.vector
    assert first < 0.1
    assert second > 0.9
    assert third == before[2]
    again = AcceptanceByRank(3)
    assert again.restore(ranks.as_json())
    assert again.vector == ranks.vector


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"there": [1.0], "accepted": [1.0]},
        {"there": [1.0, 1.0, 1.0], "accepted": [2.0, 0.0, 0.0]},
        {"there": [1.0, 1.0, float("inf")], "accepted": [0.0] * 3},
        {"there": [1.0, 1.0, True], "accepted": [0.0] * 3},
    ],
)
def test_ranks_that_are_none_are_refused(value: object) -> None:
    assert not AcceptanceByRank(3).restore(value)


def test_the_acceptance_vector_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "below" / "ranks.json"
    sequoia = method(Paper(0.5), kept=kept)
    decoded(sequoia, SamplingParams(0.0), 1)
    sequoia.close()
    assert method(Paper(0.5), kept=kept).ranks[True].vector == sequoia.ranks[True].vector
    kept.write_text("{", "utf-8")
    assert method(Paper(0.5), kept=kept).ranks[True].vector == AcceptanceByRank(8).vector
