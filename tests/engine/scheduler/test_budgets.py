"""Budgets of tokens, seconds and money, of the run and of its parts: who is stopped, and why."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.virtual_run import Played, after, echo, fail, for_ever, give, node, play, script
from weft.core.budget import Budget
from weft.core.errors import ModelUnavailable
from weft.core.events import BudgetReached, NodeSpent
from weft.core.values import Usage
from weft.engine import BudgetLimit, Expand, Inputs, NodeContext, NodeFn, Retry


def spend(tokens: int = 0, seconds: float = 0.0, money: float = 0.0, value: Any = "paid") -> NodeFn:
    """A work that spends at its end, after `seconds`."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(seconds)
        context.spend(Usage(completion_tokens=tokens, money=money, requests=1))
        await asyncio.sleep(0)
        return value

    return work


def tokens(number: int, on_reached: str = "stop") -> BudgetLimit:
    return BudgetLimit(Budget(tokens=number), on_reached)  # type: ignore[arg-type]


def seconds(number: float, on_reached: str = "stop") -> BudgetLimit:
    return BudgetLimit(Budget(seconds=number), on_reached)  # type: ignore[arg-type]


def reached(played: Played) -> list[tuple[str | None, str, bool, float]]:
    return [(e.scope, e.reason, e.degrade, e.at_s) for e in played.all(BudgetReached)]


def test_consumption_adds_up_in_events_and_result() -> None:
    played = play(node("a", spend(3, money=0.5)), node("b", spend(4, 1)))
    assert played.result.usage == Usage(completion_tokens=7, requests=2, money=0.5)
    assert [(e.node, e.usage.tokens, e.at_s) for e in played.all(NodeSpent)] == [
        ("a", 3, 0),
        ("b", 4, 1),
    ]


def test_a_run_that_has_spent_its_tokens_stops_and_says_so() -> None:
    played = play(
        node("a", spend(60, 1)),
        node("b", spend(40, 2)),
        node("free", after(9, "F")),
        node("next", spend(1), "b"),
        limit=tokens(100),
    )
    assert played.statuses == {
        "a": "succeeded",
        "b": "cancelled",
        "free": "cancelled",
        "next": "cancelled",
    }
    assert played.result.status == "partial"
    assert reached(played) == [(None, "100 of 100 tokens spent", False, 2)]
    assert played.result.reasons[0] == "the budget of the run is reached: 100 of 100 tokens spent"
    assert played.error("free") == "BudgetExceeded"


def test_money_counts_too() -> None:
    played = play(
        node("a", spend(money=0.02)), node("b", for_ever), limit=BudgetLimit(Budget(money=0.01))
    )
    assert "$0.0200 of $0.0100 spent" in played.result.reasons[0]


def test_a_run_that_has_spent_its_seconds_stops() -> None:
    played = play(node("a", after(1, "A")), node("b", for_ever), limit=seconds(4))
    assert played.statuses == {"a": "succeeded", "b": "cancelled"}
    assert played.result.wall_s == 4
    assert reached(played) == [(None, "4.0 of 4.0 s spent", False, 4)]


@settings(max_examples=50)
@given(st.floats(0, 10), st.floats(1e-6, 10))
def test_a_budget_of_seconds_is_enforced_whatever_the_rounding(
    start_s: float, limit: float
) -> None:
    played = play(
        node("before", after(start_s, 1)),
        node("a", for_ever, "before", limit=seconds(limit)),
    )
    assert played.error("a") == "BudgetExceeded"


def test_degrade_lets_go_on_what_does_not_spend() -> None:
    played = play(
        node("a", spend(100, 1)),
        node("running", spend(5, 3), spends=True),
        node("cheap", after(1, "free"), "a"),
        node("dear", spend(5), "a", spends=True, degrade=node("small", give("small"))),
        node("plain", spend(5), "a", spends=True, default="default"),
        node("out", spend(5), "a", spends=True),
        node("cone", echo, "out"),
        limit=tokens(100, "degrade"),
    )
    assert played.statuses == {
        "a": "succeeded",
        "running": "succeeded",
        "cheap": "succeeded",
        "dear": "succeeded",
        "dear/small": "succeeded",
        "plain": "succeeded",
        "out": "skipped",
        "cone": "skipped",
    }
    assert played.value("dear") == "small"
    assert (played.value("plain"), played["plain"].via) == ("default", "default")
    assert "budget reached: 100 of 100 tokens spent" in str(played["out"].failure)
    assert played.result.status == "partial"
    assert reached(played) == [(None, "100 of 100 tokens spent", True, 1)]
    assert played.result.usage.tokens == 105


def test_a_cheaper_node_that_spends_too_is_no_help() -> None:
    small = node("small", spend(1), spends=True)
    played = play(
        node("a", spend(100)),
        node("b", spend(1), "a", spends=True, degrade=small),
        limit=tokens(100, "degrade"),
    )
    assert played["b"].status == "failed"
    assert played["b/small"].status == "skipped"


def test_a_later_attempt_is_degraded_when_the_budget_went_meanwhile() -> None:
    retry = Retry(attempts=3, delay_s=5, jitter=0)
    played = play(
        node("a", fail(ModelUnavailable("x")), spends=True, retry=retry, default="D"),
        node("b", spend(100, 1)),
        limit=tokens(100, "degrade"),
    )
    assert (played.value("a"), played["a"].attempts) == ("D", 1)


def branch_of(*works: NodeFn) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = tuple(node(f"{context.scope}/{i}", w) for i, w in enumerate(works))
        return Expand(children, tuple(child.id for child in children))

    return work


def test_a_branch_that_has_spent_its_budget_stops_and_the_others_go_on() -> None:
    played = play(
        node("dear", branch_of(spend(60, 1), spend(60, 2), for_ever), limit=tokens(100)),
        node("other", spend(1000, 5)),
    )
    assert played.statuses == {
        "dear": "failed",
        "other": "succeeded",
        "dear/0": "succeeded",
        "dear/1": "cancelled",
        "dear/2": "cancelled",
    }
    assert reached(played) == [("dear", "120 of 100 tokens spent", False, 2)]
    assert "the budget of dear is reached: 120 of 100 tokens spent" in played.result.reasons
    assert played.error("dear") == "BudgetExceeded"


def test_a_stopped_branch_takes_its_fallback_or_default() -> None:
    works = branch_of(spend(60, 1), spend(60, 2), for_ever)
    spare = node("spare", give("S"))
    played = play(
        node("a", works, limit=tokens(100), fallback=spare),
        node("b", works, limit=tokens(100), default="D"),
    )
    assert (played.value("a"), played.value("b")) == ("S", "D")
    assert played.result.status == "succeeded"


def test_every_scope_is_charged_and_the_innermost_is_asked_first() -> None:
    async def inner(context: NodeContext, inputs: Inputs) -> Any:
        before = context.tokens_left()
        context.spend(Usage(prompt_tokens=10))
        return before, context.tokens_left()

    async def outer(context: NodeContext, inputs: Inputs) -> Expand:
        child = node(f"{context.scope}/x", inner, limit=tokens(50))
        return Expand((child,), (child.id,))

    played = play(node("a", outer, limit=tokens(30)), limit=tokens(1000))
    assert played.value("a/x") == (30, 20)
    assert play(node("a", outer), limit=tokens(1000)).value("a/x") == (50, 40)


def test_without_a_budget_nothing_is_counted_down() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        return context.tokens_left()

    assert play(node("a", work)).value("a") is None
    assert play(node("a", work), limit=tokens(5)).value("a") == 5


def test_the_seconds_of_a_branch_count_from_its_start() -> None:
    played = play(node("a", after(5, 1)), node("b", for_ever, "a", limit=seconds(2)))
    assert played.ended_s("b") == 7
    assert reached(played) == [("b", "2.0 of 2.0 s spent", False, 7)]


def test_the_seconds_of_a_branch_go_on_during_retries() -> None:
    """Also when the attempt that failed had a timer of its own, and between attempts."""
    retry = Retry(attempts=9, delay_s=2, factor=1, jitter=0)
    broken = fail(ModelUnavailable("x"), 1)
    for timeout_s in (None, 100.0):
        for limit in (1.5, 2.5, 3.5, 6.0):
            played = play(node("a", broken, retry=retry, timeout_s=timeout_s, limit=seconds(limit)))
            assert played.error("a") == "BudgetExceeded"
            assert played.ended_s("a") == limit


def test_the_seconds_of_a_branch_bind_its_fallback_too() -> None:
    played = play(
        node("a", fail(ValueError()), timeout_s=9, limit=seconds(3), fallback=node("s", for_ever))
    )
    assert (played.error("a"), played.ended_s("a")) == ("BudgetExceeded", 3)


def test_a_budget_is_reached_once() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        for _ in range(5):
            context.spend(Usage(prompt_tokens=10))

    played = play(node("a", work), node("b", give(1)), limit=tokens(10, "degrade"))
    assert len(reached(played)) == 1
    assert played.result.usage.tokens == 50


@pytest.mark.parametrize("on_reached", ["stop", "degrade"])
def test_what_is_spent_while_unwinding_is_charged(on_reached: str) -> None:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            context.spend(Usage(prompt_tokens=10))

    played = play(
        node("a", work, timeout_s=1), node("b", after(5, 1)), limit=tokens(10, on_reached)
    )
    assert played.result.usage.tokens == 10
    assert played["b"].status == ("cancelled" if on_reached == "stop" else "succeeded")


def test_a_script_that_stays_within_its_budget_is_left_alone() -> None:
    played = play(node("a", script(spend(9))), limit=tokens(10))
    assert played.result.status == "succeeded"
    assert played.result.reasons == ()
