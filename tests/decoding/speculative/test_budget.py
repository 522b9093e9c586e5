"""How much to draft: against every choice there is, on small ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.decoding.speculative.draft import ROOT
from weft.decoding.speculative.drafters.auto.history import AcceptanceCounts, AcceptanceRates
from weft.decoding.speculative.drafters.model.sequoia_tree import TreeShapeSearch
from weft.decoding.speculative.pass_costs import CostCurve

FLAT = CostCurve({1: 2.0, 100: 2.0})
chances = st.lists(st.floats(0.0, 0.6), min_size=1, max_size=3)


def known(chances: Sequence[float]) -> AcceptanceRates:
    """As after very many tests."""
    counts = AcceptanceCounts(len(chances), memory=1e9)
    counts.tested = [1e9] * len(chances)
    counts.accepted = [1e9 * chance for chance in chances]
    return AcceptanceRates((counts,), 0.5)


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
    shape = TreeShapeSearch(ranks).best(nodes, depth)
    assert expected(shape.parents, ranks, depth) == pytest.approx(shape.expected)
    others = [expected(parents, ranks, depth) for parents in all_shapes(len(shape.parents))]
    assert shape.expected == pytest.approx(max(value for value in others if value is not None))
    assert shape.depth <= depth
    if len(shape.parents) < nodes:
        assert all(expected(p, ranks, depth) is None for p in all_shapes(len(shape.parents) + 1))


@given(chances, st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_no_tree_of_any_size_is_faster(ranks: list[float], draft_s: float, slope: float) -> None:
    def seconds(parents: tuple[int, ...], tokens: float, depth: int) -> float:
        return (depth * draft_s + 1.0 + slope * len(parents)) / tokens

    shape = TreeShapeSearch(ranks).fastest(4, 4, draft_s, lambda tokens: 1.0 + slope * (tokens - 1))
    found = seconds(shape.parents, shape.expected, shape.depth)
    for nodes in range(5):
        for parents in all_shapes(nodes):
            for depth in range(nodes + 1):
                tokens = expected(parents, ranks, depth)
                if tokens is not None:
                    assert found <= seconds(parents, tokens, depth) + 1e-9


def test_a_hopeless_draft_is_no_draft() -> None:
    shape = TreeShapeSearch([0.0, 0.0]).fastest(4, 4, 0.1, lambda tokens: 1.0 + 0.1 * tokens)
    assert shape.parents == ()


def test_a_free_and_certain_draft_is_as_deep_as_it_may_be() -> None:
    shape = TreeShapeSearch([1.0]).fastest(6, 6, 0.0, lambda _: 1.0)
    assert shape.parents == (ROOT, 0, 1, 2, 3, 4)
    assert shape.expected == 7.0


@given(st.lists(st.tuples(st.integers(2, 64), st.floats(0.01, 9)), max_size=5), st.integers(1, 90))
def test_a_curve_never_falls_and_begins_at_one(
    points: list[tuple[int, float]], tokens: int
) -> None:
    curve = CostCurve({1: 0.5, **dict(points)})
    assert curve(1) == 1.0
    assert curve(tokens + 1) >= curve(tokens) >= 1.0


def test_a_curve_is_straight_between_measurements_and_goes_on_beyond() -> None:
    curve = CostCurve({1: 2.0, 5: 4.0, 9: 8.0})
    assert [curve(n) for n in (3, 5, 7, 11)] == [1.5, 2.0, 3.0, 5.0]


@pytest.mark.parametrize("wrong", [{}, {2: 1.0}, {1: 0.0}, {1: 1.0, 0: 1.0}])
def test_times_that_are_none_are_refused(wrong: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="a curve needs"):
        CostCurve(wrong)


def unknown(longest: int, memory: float = 16.0) -> AcceptanceRates:
    return AcceptanceRates((AcceptanceCounts(longest, memory=memory),), 0.6)


def test_only_depths_that_were_tested_are_learnt_from() -> None:
    learning = unknown(4)
    learning.observe(4, 1)
    first, second, third, fourth = learning.each(4)
    assert first > 0.6
    assert second < first
    assert third == fourth == second, "as the one above"


def test_few_tests_of_one_count_little_against_many_of_all() -> None:
    wide, own = AcceptanceCounts(1, memory=1000.0), AcceptanceCounts(1, memory=32.0)
    for _ in range(500):
        wide.add(0, accepted=True)
    both = AcceptanceRates((wide, own), 0.5)
    own.add(0, accepted=False)
    assert both.each(1)[0] > 0.75
    for _ in range(40):
        own.add(0, accepted=False)
    assert both.each(1)[0] < 0.2
