from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.speculative.drafters.trained.ppd import PromptTrees, best_trees

ACCURACY = [[0.55, 0.15, 0.06], [0.35, 0.12, 0.05], [0.22, 0.1, 0.04]]
RANDOM = st.lists(st.lists(st.floats(0.0, 0.3), min_size=3, max_size=3), min_size=1, max_size=3)


def simulated(trees: PromptTrees, steps: int) -> float:
    """Tokens a step of a long run that draws where each step ends."""
    chance, state, tokens = np.random.default_rng(0), 0, 0
    for _ in range(steps):
        laid = trees.states[state]
        ends = laid.ends / laid.ends.sum()
        last = int(chance.choice(len(ends), p=ends))
        tokens += 1 + (laid.tree.depths[last - 1] if last else 0)
        state = laid.rows[last]
    return tokens / steps


@settings(max_examples=25, deadline=None)
@given(accuracy=RANDOM, budget=st.integers(1, 14))
def test_trees_keep_to_their_budget(accuracy: list[list[float]], budget: int) -> None:
    trees = best_trees(accuracy, budget)
    prompts = len(accuracy)
    assert len(trees.states) == prompts + 1
    for state, laid in enumerate(trees.states):
        assert len(laid.rows) == 1 + len(laid.tree)
        assert len(laid.tree) + sum(laid.rows) <= budget
        assert all(0 <= count <= prompts for count in laid.rows)
        assert max(laid.tree.depths, default=0) <= state
        assert laid.ends.sum() == pytest.approx(1.0)
    assert len(trees.states[0].tree) == 0
    assert 1.0 <= trees.expected <= 1.0 + prompts


def test_the_expected_tokens_are_those_of_a_long_run() -> None:
    trees = best_trees(ACCURACY, 16)
    assert simulated(trees, 20_000) == pytest.approx(trees.expected, rel=0.02)


def test_more_budget_is_never_worse() -> None:
    found = [best_trees(ACCURACY, budget).expected for budget in (1, 3, 6, 12, 24, 48)]
    assert found == sorted(found)
    assert found[-1] > found[2] > found[0]
    # with room for everything, all prompt tokens hang everywhere, and the deepest tree is the only
    full = best_trees(ACCURACY, 1000)
    best = 1.0 + sum(
        np.prod([sum(row) for row in ACCURACY[:depth]]) for depth in range(1, len(ACCURACY) + 1)
    )
    assert full.expected == pytest.approx(best, rel=1e-3)


def test_prompt_tokens_hang_where_they_are_missed_most() -> None:
    trees = best_trees(ACCURACY, 12)
    laid = trees.states[-1]
    by_end = sorted(zip(laid.ends, laid.rows, strict=True), reverse=True)
    counts = [count for _, count in by_end]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_one_row_for_a_prompt_token_that_helps() -> None:
    """With a single row of budget, only every second pass has a candidate at best."""
    trees = best_trees([[0.5]], 1)
    assert trees.states[0].rows == (1,)
    assert trees.expected > 1.0
