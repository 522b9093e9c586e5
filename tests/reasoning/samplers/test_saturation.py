"""The saturation model against its own definition and against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.reasoning.samplers.saturation import ChainCosts, gain, performance, saturation, split

PROBABILITIES = st.floats(0.01, 0.99)


def test_the_example_of_the_paper() -> None:
    assert saturation(0.3, 0.01) == 10


@given(st.integers(0, 60), PROBABILITIES, st.floats(0.05, 1))
def test_the_gain_is_the_difference_of_the_performance(n: int, p: float, f_max: float) -> None:
    difference = performance(n + 1, p, f_max) - performance(n, p, f_max)
    assert gain(n, p, f_max) == pytest.approx(difference, abs=1e-12)


@given(PROBABILITIES, st.floats(1e-4, 0.5), st.floats(0.05, 1))
def test_saturation_is_the_first_unit_that_gains_no_more_than_eps(
    p: float, eps: float, f_max: float
) -> None:
    n = saturation(p, eps, f_max)
    assert gain(n, p, f_max) <= eps * (1 + 1e-9)
    assert n == 0 or gain(n - 1, p, f_max) > eps * (1 - 1e-9)


def test_what_is_hopeless_or_certain_needs_none_or_one() -> None:
    assert saturation(0.0, 0.01) == 0
    assert saturation(1.0, 0.01) == 1
    assert saturation(0.5, 0.6) == 0


@pytest.mark.parametrize(("p", "eps", "f_max"), [(-0.1, 0.1, 1), (0.5, 0, 1), (0.5, 0.1, 1.5)])
def test_values_out_of_range_are_refused(p: float, eps: float, f_max: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        saturation(p, eps, f_max)


@given(
    PROBABILITIES,
    PROBABILITIES,
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(50, 400),
    st.integers(1, 12),
)
def test_no_affordable_split_is_better_by_more_than_a_few_eps(
    p: float, q: float, first: int, later: int, budget: int, width: int
) -> None:
    costs, eps = ChainCosts(first, later), 0.01
    found = split(p, q, costs, budget, width=width, eps=eps)
    assert found.tokens <= budget
    assert found.parallel <= width
    assert found.tokens == found.parallel * costs.chain(found.serial)
    fails = (1 - p) * (1 - q) ** (found.serial - 1)
    assert found.performance == pytest.approx(1 - fails**found.parallel)
    best = max(
        1 - ((1 - p) * (1 - q) ** (serial - 1)) ** parallel
        for serial in range(1, 400)
        for parallel in range(1, width + 1)
        if parallel * costs.chain(serial) <= budget
    )
    # Chains that gain less than eps each are left out, and a geometric series of such gains with
    # the ratio 1 - p' sums up to at most eps / p' beyond what was taken.
    assert found.performance >= best - 3 * eps / min(1 - fails, p, q)


def test_latency_turns_rounds_into_chains() -> None:
    costs = ChainCosts(100, 100)
    deep = split(0.1, 0.4, costs, 2000, eps=0.001)
    flat = split(0.1, 0.4, costs, 2000, eps=0.001, latency=100)
    assert deep.serial > 1
    assert (flat.serial, flat.parallel) == (1, 20)
    assert flat.why == "the budget is spent"


def test_a_budget_that_pays_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="do not pay"):
        split(0.5, 0.5, ChainCosts(100, 50), 99)
