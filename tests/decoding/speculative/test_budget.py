"""How much to draft: against every choice there is, on small ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.budget.curve import Curve
from weft.decoding.speculative.budget.goodput import Goodput
from weft.decoding.speculative.budget.sequoia import best_shape, fastest_shape
from weft.decoding.speculative.tree import ROOT

FLAT = Curve({1: 2.0, 100: 2.0})
chances = st.lists(st.floats(0.0, 0.6), min_size=1, max_size=3)


def all_shapes(nodes: int) -> Iterator[tuple[int, ...]]:
    """The parents of every tree whose nodes are numbered in order."""
    if not nodes:
        yield ()
        return
    for rest in all_shapes(nodes - 1):
        for parent in range(ROOT, nodes - 1):
            yield (*rest, parent)


def expected(parents: tuple[int, ...], ranks: list[float], depth: int) -> float | None:
    """Tokens a step of a tree; None: it is too wide or too deep."""
    reached, depths, children = {ROOT: 1.0}, {ROOT: 0}, dict.fromkeys(range(ROOT, 9), 0)
    for node, parent in enumerate(parents):
        rank, depths[node] = children[parent], depths[parent] + 1
        children[parent] += 1
        if rank >= len(ranks) or depths[node] > depth:
            return None
        reached[node] = reached[parent] * ranks[rank]
    return sum(reached.values())


@given(chances, st.integers(0, 5), st.integers(0, 4))
def test_no_tree_is_accepted_further(ranks: list[float], nodes: int, depth: int) -> None:
    shape = best_shape(ranks, nodes, depth)
    assert expected(shape.parents, ranks, depth) == pytest.approx(shape.expected)
    others = [expected(parents, ranks, depth) for parents in all_shapes(len(shape.parents))]
    assert shape.expected == pytest.approx(max(value for value in others if value is not None))
    assert shape.depth <= depth
    if len(shape.parents) < nodes:
        assert all(expected(p, ranks, depth) is None for p in all_shapes(len(shape.parents) + 1))


def test_a_hopeless_draft_is_no_draft() -> None:
    shape = fastest_shape([0.0, 0.0], 4, 4, 0.1, lambda tokens: 1.0 + 0.1 * tokens)
    assert shape.parents == ()


def test_a_free_and_certain_draft_is_as_deep_as_it_may_be() -> None:
    shape = fastest_shape([1.0], 6, 6, 0.0, lambda _: 1.0)
    assert shape.parents == (ROOT, 0, 1, 2, 3, 4)
    assert shape.expected == 7.0


@given(st.lists(st.tuples(st.integers(2, 64), st.floats(0.01, 9)), max_size=5), st.integers(1, 90))
def test_a_curve_never_falls_and_begins_at_one(
    points: list[tuple[int, float]], tokens: int
) -> None:
    curve = Curve({1: 0.5, **dict(points)})
    assert curve(1) == 1.0
    assert curve(tokens + 1) >= curve(tokens) >= 1.0


def test_a_curve_is_straight_between_measurements_and_goes_on_beyond() -> None:
    curve = Curve({1: 2.0, 5: 4.0, 9: 8.0})
    assert [curve(n) for n in (3, 5, 7, 11)] == [1.5, 2.0, 3.0, 5.0]


@pytest.mark.parametrize("wrong", [{}, {2: 1.0}, {1: 0.0}, {1: 1.0, 0: 1.0}])
def test_times_that_are_none_are_refused(wrong: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="a curve needs"):
        Curve(wrong)


@pytest.mark.parametrize(
    ("alpha", "cost", "length"),
    [(0.5, 0.02, 4), (0.8, 0.05, 8), (0.9, 0.2, 7), (0.5, 0.5, 0), (0.6, 0.5, 1)],
)
def test_the_best_lengths_of_the_table(alpha: float, cost: float, length: int) -> None:
    """The scan for independent tests at one chance, where reading more tokens costs nothing."""
    goodput = Goodput(FLAT, cost, 40, memory=1.0)
    for _ in range(400):
        goodput.observe(40, 40)
    goodput._chances = [alpha] * 40
    assert goodput.length() == length


def test_what_is_never_right_is_not_drafted_but_now_and_then() -> None:
    goodput = Goodput(Curve({1: 1.0, 9: 2.0}), 0.1, 8, explore=8)
    lengths = []
    for _ in range(64):
        lengths.append(goodput.length())
        goodput.observe(lengths[-1], 0)
    assert lengths[-8:-1] == [0] * 7
    assert lengths[-1] == 4


def test_what_turns_right_is_drafted_again() -> None:
    goodput = Goodput(FLAT, 0.01, 8, explore=4)
    for _ in range(40):
        goodput.observe(goodput.length(), 0)
    for _ in range(200):
        length = goodput.length()
        goodput.observe(length, length)
    assert goodput.length() == 8


def test_only_depths_that_were_tested_are_learnt_from() -> None:
    goodput = Goodput(FLAT, 0.01, 4, memory=2.0)
    before = goodput.chances
    goodput.observe(4, 1)
    assert goodput.chances[0] > before[0]
    assert goodput.chances[1] < before[1]
    assert goodput.chances[2:] == before[2:]
