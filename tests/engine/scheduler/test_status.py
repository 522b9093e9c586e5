"""The verdict over a run: one word, and sentences that say what kept it from plain success."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play
from weft.core.budget import Budget
from weft.core.errors import Failure, ModelUnavailable, UnknownReference
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine import (
    ALL,
    BudgetLimit,
    Expand,
    Inputs,
    Join,
    Node,
    NodeCache,
    NodeContext,
    NodeFn,
    Partial,
    Retry,
    Skip,
    best_effort,
    first_valid,
)
from weft.engine.kinds import Fragment, loop
from weft.testing import MemoryStore

BOOM = ValueError("boom")
CUT = Partial(7, Failure("ReasoningError", "it was cut off"))


def grow(*children: Node, join: Join = ALL, results: tuple[str, ...] | None = None) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        ids = tuple(child.id for child in children) if results is None else results
        return Expand(children, tuple(map(NodeId, ids)), join=join)

    return work


async def spend_all(context: NodeContext, inputs: Inputs) -> None:
    context.spend(Usage(prompt_tokens=100))
    await asyncio.sleep(1)


def failing(**policy: Any) -> Node:
    return node("a", fail(BOOM), **policy)


def failing_too() -> Node:
    return node("d", fail(BOOM))


def test_a_partial_value_goes_on_and_is_told() -> None:
    result = play(node("a", give(CUT)), node("b", echo, "a")).result
    assert result.value("a") == 7
    assert result.value("b") == {"a": 7}
    assert result.reasons == ("a is partial: ReasoningError: it was cut off",)
    assert result.outcomes[NodeId("a")].partial
    assert not result.outcomes[NodeId("b")].partial
    assert result.missed == ()


def test_what_was_partial_in_an_attempt_that_was_repeated_is_not_missed() -> None:
    async def work(context: NodeContext, _: Inputs) -> Any:
        if context.attempt > 1:
            return 1
        context.append([Node(NodeId(f"{context.scope}/c"), give(CUT))])
        await context.outcome(NodeId(f"{context.scope}/c"))
        raise ModelUnavailable("again")

    result = play(node("a", work, retry=Retry(2))).result
    assert (result.status, result.reasons) == ("succeeded", ())


def test_a_partial_value_is_not_cached() -> None:
    store = MemoryStore()
    for _ in range(2):
        done = play(node("a", give(CUT), cache=NodeCache("one")), store=store)
        assert done.result.status == "partial"


@pytest.mark.parametrize(
    ("nodes", "options", "status"),
    [
        ([], {}, "succeeded"),
        ([node("a", give(1))], {}, "succeeded"),
        ([node("a", give(Skip())), node("b", echo, "a")], {}, "succeeded"),
        ([failing()], {}, "failed"),
        ([failing(on_failure="skip")], {}, "partial"),
        ([failing(on_failure="skip"), node("b", echo, "a")], {}, "partial"),
        ([failing(default=1)], {}, "succeeded"),
        ([node("a", give(CUT))], {}, "partial"),
        ([node("a", give(CUT)), node("b", echo, "a")], {}, "partial"),
        ([node("a", give(CUT)), failing_too()], {}, "failed"),
        ([failing(fallback=node("c", give(CUT)))], {}, "partial"),
        ([node("a", grow(node("c", give(CUT))))], {}, "partial"),
        ([failing(fallback=node("s", give(1)))], {}, "succeeded"),
        ([failing(on_failure="skip"), node("b", fail(BOOM))], {}, "failed"),
        ([node("a", for_ever)], {"deadline_s": 1}, "partial"),
        ([failing(), node("b", for_ever)], {"deadline_s": 1}, "partial"),
        ([node("a", spend_all)], {"limit": BudgetLimit(Budget(tokens=9))}, "partial"),
        ([node("a", spend_all)], {"limit": BudgetLimit(Budget(tokens=9), "degrade")}, "succeeded"),
        ([node("a", for_ever)], {"at": {1: lambda run: run.cancel()}}, "cancelled"),
        ([failing(), node("b", for_ever)], {"at": {1: lambda run: run.cancel()}}, "cancelled"),
        (
            [node("a", for_ever), node("b", after(2, 1))],
            {"at": {1: lambda run: run.cancel("no", "a")}},
            "partial",
        ),
        (
            [
                node("a", for_ever),
                node("b", give(1)),
                node("j", echo, "a", "b", join=first_valid()),
            ],
            {},
            "succeeded",
        ),
    ],
)
def test_the_verdict(nodes: list[Node], options: dict[str, Any], status: str) -> None:
    assert play(*nodes, **options).result.status == status


@pytest.mark.parametrize(
    ("join", "status"),
    [
        (Join(), "failed"),
        (best_effort(0), "succeeded"),
        (Join("any"), "succeeded"),
        (Join("quorum", k=1), "succeeded"),
        (Join("quorum", k=2), "failed"),
        (first_valid(), "succeeded"),
    ],
)
def test_a_join_that_does_without_a_child_absorbs_its_failure(join: Join, status: str) -> None:
    children = node("p/bad", fail(BOOM)), node("p/good", after(1, 1))
    played = play(node("p", grow(*children, join=join)))
    assert played.result.status == status
    assert (played.result.reasons == ()) == (status == "succeeded")


def test_a_failure_deep_inside_a_tolerated_child_is_absorbed() -> None:
    inner = node("p/a", grow(node("p/a/x", grow(node("p/a/x/y", fail(BOOM))))))
    played = play(node("p", grow(inner, node("p/b", give(1)), join=best_effort())))
    assert played.statuses["p/a/x/y"] == "failed"
    assert played.result.status == "succeeded"


def test_a_failure_that_leads_to_a_tolerated_one_is_absorbed() -> None:
    children = node("p/a", fail(BOOM)), node("p/b", echo, "p/a"), node("p/c", give(1))
    played = play(node("p", grow(*children, join=best_effort(), results=("p/b", "p/c"))))
    assert played.value("p") == [1]
    assert played.result.status == "succeeded"


def test_a_failure_tolerated_in_an_earlier_iteration_stays_absorbed() -> None:
    def body(scope: NodeId, bindings: Any) -> Fragment:
        if bindings["iteration"] == 1:
            children = node(f"{scope}/bad", fail(BOOM)), node(f"{scope}/good", give(1))
            return Fragment((Node(scope, grow(*children, join=best_effort())),), scope)
        return Fragment((Node(scope, give(2)),), scope)

    played = play(node("l", loop(body, until=lambda v, n: n == 2, max_iterations=2)))
    assert played.value("l") == 2
    assert played.result.status == "succeeded"


def test_a_growth_that_tolerated_failures_and_grew_again_absorbs_them() -> None:
    async def again(context: NodeContext, values: list[Any]) -> Expand:
        return Expand((node("p/second", give(2)),), (NodeId("p/second"),))

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = node("p/bad", fail(BOOM)), node("p/good", give(1))
        ids = tuple(child.id for child in children)
        return Expand(children, ids, join=best_effort(), then=again)

    played = play(node("p", work))
    assert played.value("p") == [2]
    assert played.result.status == "succeeded"


def test_children_of_an_attempt_that_was_repeated_are_absorbed() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        if context.attempt == 2:
            return "fine"
        child = node("p/x", fail(ModelUnavailable("x")))
        return Expand((child,), (child.id,))

    played = play(node("p", work, retry=Retry(delay_s=1)))
    assert played.result.status == "succeeded"


def test_each_failure_that_counts_has_its_sentence() -> None:
    played = play(
        node("a", fail(BOOM)),
        node("cone", echo, "a"),
        node("b", fail(ModelUnavailable("gone", hint="start it")), on_failure="skip"),
    )
    assert played.result.reasons == (
        "a failed: NodeFailed: ValueError: boom",
        "b failed: ModelUnavailable: gone (start it)",
    )


def test_a_value_is_given_or_the_reason_why_there_is_none() -> None:
    result = play(
        node("a", give(1)), node("b", fail(BOOM)), node("c", echo, "b"), node("d", give(Skip()))
    ).result
    assert result.value("a") == 1
    for name, says in [
        ("b", "b was failed: NodeFailed: ValueError: boom"),
        ("c", "c was skipped: Upstream: needs b, which failed"),
        ("d", "d was skipped"),
        ("nobody", "there is no node 'nobody'"),
    ]:
        with pytest.raises(UnknownReference, match=says):
            result.value(name)


@pytest.mark.parametrize(("needed_by_another", "status"), [(False, "succeeded"), (True, "failed")])
def test_a_lost_branch_counts_only_if_something_besides_the_join_needs_it(
    needed_by_another: bool, status: str
) -> None:
    nodes = [
        failing(),
        node("b", echo, "a"),
        node("c", give(1)),
        node("j", echo, "b", "c", join=Join("any")),
        node("d", echo, "b" if needed_by_another else "c"),
    ]
    played = play(*nodes)
    assert played["j"].ok
    assert played.result.status == status


def test_a_wanted_value_is_missed_even_if_a_join_tolerates_its_loss() -> None:
    nodes = [failing(), node("c", give(1)), node("j", echo, "a", "c", join=Join("any"))]
    assert play(*nodes).result.status == "succeeded"
    assert play(*nodes, keep=["a"]).result.status == "failed"


@pytest.mark.parametrize(("needed_by_another", "status"), [(False, "succeeded"), (True, "failed")])
def test_what_is_inside_a_node_that_is_not_missed_is_not_missed(
    needed_by_another: bool, status: str
) -> None:
    nodes = [
        node("m", grow(node("m/a", fail(BOOM)), node("m/b", give(1)))),
        node("c", give(1)),
        node("j", echo, "m", "c", join=best_effort()),
        node("d", echo, "m" if needed_by_another else "c"),
    ]
    assert play(*nodes).result.status == status
