from __future__ import annotations

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.budget import Budget
from weft.core.values import Usage

# Money in sixty-fourths of a dollar adds up exactly in binary.
MONEY = st.integers(0, 10**6).map(lambda n: n / 64)
SECONDS = st.integers(0, 10**6).map(lambda n: n / 64)
BUDGET = st.builds(
    Budget, st.none() | st.integers(0, 10**9), st.none() | SECONDS, st.none() | MONEY
)


@given(BUDGET, st.integers(1, 300))
def test_shares_sum_to_the_whole_and_are_fair(budget: Budget, parts: int) -> None:
    shares = budget.split(parts)
    assert len(shares) == parts
    whole = reduce(Budget.beside, shares)
    assert whole.tokens == budget.tokens
    assert whole.seconds == budget.seconds
    if budget.money is None:
        assert whole.money is None
    else:
        assert whole.money == pytest.approx(budget.money)
    if budget.tokens is not None:
        tokens = [share.tokens for share in shares if share.tokens is not None]
        assert max(tokens) - min(tokens) <= 1
    assert len({share.money for share in shares}) == 1


@given(BUDGET, BUDGET, BUDGET)
def test_both_compositions_are_associative_and_commutative(a: Budget, b: Budget, c: Budget) -> None:
    for join in (Budget.then, Budget.beside):
        assert join(join(a, b), c) == join(a, join(b, c))
        assert join(a, b) == join(b, a)


@given(BUDGET, BUDGET)
def test_parallel_takes_the_longer_time_and_never_more_than_one_after_the_other(
    a: Budget, b: Budget
) -> None:
    after, beside = a.then(b), a.beside(b)
    assert (after.tokens, after.money) == (beside.tokens, beside.money)
    if after.seconds is None or beside.seconds is None:
        assert after.seconds is beside.seconds
    else:
        assert beside.seconds in (a.seconds, b.seconds)
        assert beside.seconds <= after.seconds


@given(BUDGET)
def test_nothing_is_the_neutral_element(budget: Budget) -> None:
    assert budget.then(Budget(0, 0, 0)) == budget
    assert budget.beside(Budget(0, 0, 0)) == budget


@given(BUDGET)
def test_no_limit_swallows_every_limit(budget: Budget) -> None:
    assert budget.then(Budget()).unlimited
    assert budget.beside(Budget()).unlimited


@given(
    BUDGET,
    st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6), money=MONEY),
    SECONDS,
)
def test_exceeded_exactly_when_a_limit_is_reached(
    budget: Budget, usage: Usage, elapsed_s: float
) -> None:
    reached = [
        budget.tokens is not None and usage.tokens >= budget.tokens,
        budget.money is not None and usage.money >= budget.money,
        budget.seconds is not None and elapsed_s >= budget.seconds,
    ]
    told = budget.exceeded(usage, elapsed_s)
    assert (told is not None) == any(reached)


def test_the_reason_names_both_numbers() -> None:
    assert Budget(tokens=1000).exceeded(Usage(900, 200), 0) == "1,100 of 1,000 tokens spent"
    assert Budget(money=0.5).exceeded(Usage(money=0.75), 0) == "$0.7500 of $0.5000 spent"
    assert Budget(seconds=2).exceeded(Usage(), 3) == "3.0 of 2.0 s spent"


@pytest.mark.parametrize("name", ["tokens", "seconds", "money"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_limits_are_not_negative_nor_nothing(name: str, value: float) -> None:
    limits: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=name):
        Budget(**limits)


@pytest.mark.parametrize("parts", [0, -1])
def test_there_is_at_least_one_share(parts: int) -> None:
    with pytest.raises(ValueError, match="one or more"):
        Budget(10).split(parts)
