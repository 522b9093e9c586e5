"""How even draws are: known counts, fair draws, biased ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.decoding.diffusion.oracle.measures import answer_index, uniformity
from weft.decoding.diffusion.oracle.languages import answer_table, random_answer, random_question


def test_places_are_those_of_the_table_whatever_the_names() -> None:
    random = np.random.default_rng(0)
    for _ in range(3):
        question = random_question("replace_random", 4, random)
        replaced = list(question.items)
        replaced[2] = question.arguments[0]
        assert answer_index(question, replaced) == 2
        assert answer_index(question, question.items) is None
        assert answer_index(question, question.items[:-1]) is None


def test_known_counts() -> None:
    found = uniformity([0, 0, 0, 1, None], 2)

    assert (found.drawn, found.outcomes, found.valid) == (5, 2, 0.8)
    assert found.total_variation == pytest.approx(0.25)
    assert uniformity([0, 1] * 50, 2).total_variation == 0.0
    assert uniformity([0, 1] * 50, 2).p > 0.9
    assert uniformity([0] * 9, 1).p == 1.0
    assert uniformity([None], 3).valid == 0.0
    with pytest.raises(ValueError, match="no answers"):
        uniformity([], 2)


def test_the_tail_is_that_of_tables() -> None:
    """Chi square 16.92 with 9 degrees of freedom has p = 0.05, 21.67 has p = 0.01."""
    counts = np.array([100] * 10)
    for chi_square, p in ((16.92, 0.05), (21.67, 0.01)):
        off = np.sqrt(chi_square * 100 / 2)
        moved = counts + np.array([off, -off, *[0] * 8])
        places = np.repeat(np.arange(10), np.round(moved).astype(int))
        assert uniformity(places.tolist(), 10).p == pytest.approx(p, rel=0.1)


def test_fair_draws_look_fair_and_greedy_ones_do_not() -> None:
    random = np.random.default_rng(5)
    question = random_question("insert_random", 5, random)
    count = len(answer_table(question))
    fair = uniformity(
        [answer_index(question, random_answer(question, random)) for _ in range(600)], count
    )

    assert fair.valid == 1.0
    assert fair.p > 0.01
    assert fair.total_variation == pytest.approx(fair.by_chance, rel=0.5)
    assert uniformity([2] * 600, count).p < 1e-9
