"""A graph that grows while it runs: what works append, wait for and join, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play, script
from weft.core.errors import BuildError, UnknownReference
from weft.core.events import GraphGrew, NodeWaiting, Outcome
from weft.core.ids import NodeId
from weft.engine import (
    Edge,
    Expand,
    Inputs,
    Join,
    Node,
    NodeContext,
    NodeFn,
    Retry,
    Skip,
    first_valid,
)
from weft.engine.graph.node import Then


def grow(
    *children: Node, results: tuple[str, ...] | None = None, then: Then | None = None, **more: Any
) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        ids = tuple(child.id for child in children) if results is None else results
        return Expand(children, tuple(map(NodeId, ids)), then=then, **more)

    return work


def test_the_value_is_the_list_of_results_in_declared_order() -> None:
    played = play(node("a", grow(node("a/x", after(2, "X")), node("a/y", after(1, "Y")))))
    assert played.value("a") == ["X", "Y"]
    assert [e.at_s for e in played.all(NodeWaiting)] == [0]
    assert [(e.parent, [n.id for n in e.nodes]) for e in played.all(GraphGrew)] == [
        ("a", ["a/x", "a/y"])
    ]


def test_results_may_be_some_of_the_nodes_in_another_order() -> None:
    children = node("a/x", give("X")), node("a/y", echo, "a/x"), node("a/z", give("Z"))
    assert play(node("a", grow(*children, results=("a/z", "a/y")))).value("a") == [
        "Z",
        {"a/x": "X"},
    ]


def test_then_goes_on_with_the_values_and_may_grow_again() -> None:
    async def then(context: NodeContext, values: list[Any]) -> Any:
        if len(values) == 3:
            return values
        children = [node(f"a/{len(values)}-{i}", after(1, i)) for i in range(len(values) + 1)]
        return Expand(tuple(children), tuple(c.id for c in children), then=then)

    played = play(node("a", grow(node("a/x", after(1, "X")), then=then)))
    assert played.value("a") == [0, 1, 2]
    assert played.ended_s("a") == 3


def test_then_may_fail_be_left_out_or_ask_for_a_second_attempt() -> None:
    async def broken(context: NodeContext, values: list[Any]) -> Any:
        raise ValueError("then")

    async def leave(context: NodeContext, values: list[Any]) -> Any:
        return Skip("no use")

    played = play(
        node("a", grow(node("a/x", give(1)), then=broken)),
        node("b", grow(node("b/x", give(1)), then=leave)),
    )
    assert played.statuses["a"] == "failed"
    assert played.statuses["b"] == "skipped"


def test_children_may_use_what_exists_outside() -> None:
    played = play(
        node("outer", after(2, "O")),
        node("a", grow(node("a/x", echo, "outer"), node("a/y", echo, "a/x", "outer"))),
    )
    assert played.value("a/y") == {"a/x": {"outer": "O"}, "outer": "O"}


def test_growth_nests_deeply() -> None:
    def nested(depth: int) -> NodeFn:
        async def work(context: NodeContext, inputs: Inputs) -> Any:
            if depth == 0:
                return "bottom"
            child = node(f"{context.node}/{depth}", nested(depth - 1))
            return Expand((child,), (child.id,))

        return work

    value = play(node("a", nested(3_000))).value("a")
    for _ in range(3_000):
        (value,) = value
    assert value == "bottom"


def test_a_node_that_appends_ends_after_what_it_appended() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        context.append([node("a/x", after(5, "X"))])
        context.append([node("a/y", echo, "a/x")])
        return "early"

    played = play(node("a", work), node("next", echo, "a"))
    assert played.value("next") == {"a": "early"}
    assert played.started_s("a/x") == 0
    assert played.ended_s("a") == 5
    assert played.value("a/y") == {"a/x": "X"}


@pytest.mark.parametrize("answer", [Skip("enough"), Skip()])
def test_a_node_that_leaves_itself_out_ends_after_what_it_appended(answer: Skip) -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Skip:
        context.append([node("a/x", after(5, "X"))])
        return answer

    played = play(node("a", work))
    assert played.statuses == {"a": "skipped", "a/x": "succeeded"}
    assert played.ended_s("a") == 5


def test_what_is_appended_and_fails_counts_in_the_verdict_but_not_in_the_value() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        context.append([node("a/x", fail(ValueError("x"), 1))])
        return "fine"

    played = play(node("a", work))
    assert played.value("a") == "fine"
    assert played.result.status == "failed"


def test_what_a_failing_node_appended_is_cancelled() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        context.append([node("a/x", for_ever)])
        await asyncio.sleep(1)
        raise ValueError("x")

    played = play(node("a", work))
    assert played.statuses == {"a": "failed", "a/x": "cancelled"}


def test_an_outcome_can_be_awaited_whatever_it_is() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> list[str]:
        context.append([node("a/x", fail(ValueError(), 2)), node("a/y", give(Skip()))])
        ends: list[Outcome] = [await context.outcome(NodeId(f"a/{n}")) for n in "xyx"]
        return [end.status for end in ends]

    played = play(node("a", work, on_failure="skip"))
    assert played.value("a") == ["failed", "skipped", "failed"]
    assert played.ended_s("a") == 2


def test_the_outcome_of_a_node_beside_it_can_be_awaited() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        return (await context.outcome(NodeId("b"))).value

    played = play(node("a", work), node("b", after(3, "B")))
    assert (played.value("a"), played.ended_s("a")) == ("B", 3)


def test_an_outcome_of_nobody_is_refused() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        await context.outcome(NodeId("nobody"))

    assert play(node("a", work)).error("a") == "UnknownReference"


@pytest.mark.parametrize("target", ["a", "top", "next", "beyond"])
def test_an_outcome_that_must_wait_for_the_one_who_asks_is_refused(target: str) -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        await context.outcome(NodeId(target))

    played = play(
        node("top", grow(node("a", work))),
        node("next", echo, "top"),
        node("beyond", echo, "next"),
    )
    assert played.error("a") == "CycleError"


def test_works_that_await_each_other_are_told_so() -> None:
    async def first(context: NodeContext, inputs: Inputs) -> str:
        return (await context.outcome(NodeId("b"))).status

    async def second(context: NodeContext, inputs: Inputs) -> None:
        await asyncio.sleep(1)
        await context.outcome(NodeId("a"))

    async def third(context: NodeContext, inputs: Inputs) -> Expand:
        await asyncio.sleep(1)
        return Expand((node("b/x", echo, "a"),), (NodeId("b/x"),))

    for other in (second, third):
        played = play(node("a", first), node("b", other))
        assert played.error("b") == "CycleError"
        assert played.value("a") == "failed"


def test_what_an_earlier_attempt_waited_for_binds_nobody() -> None:
    async def first(context: NodeContext, inputs: Inputs) -> Any:
        return await context.outcome(NodeId("b"))

    async def other(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(3)
        return (await context.outcome(NodeId("a"))).value

    retry = Retry(attempts=2, delay_s=1, jitter=0)
    played = play(
        node("a", script(first, after(5, "A")), timeout_s=2, retry=retry),
        node("b", other),
        node("c", script(first, after(1, "C")), timeout_s=2, retry=retry),
    )
    assert played.statuses == {"a": "failed", "b": "succeeded", "c": "succeeded"}


def test_who_has_enough_already_waits_for_nobody_any_more() -> None:
    """`pick` was decided by `fast`; that `slow` waits for it is no deadlock."""

    async def slow(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        return (await context.outcome(NodeId("pick"))).value

    played = play(
        node("fast", give("F")),
        node("slow", slow),
        node("pick", after(5, "P"), "fast", "slow", join=Join("any")),
    )
    assert played.value("slow") == "P"


def refused(*children: Node, results: tuple[str, ...] | None = None, **more: Any) -> str:
    """The error of a node that asks for this growth; the run must end all the same."""
    played = play(
        node("a", grow(*children, results=results, **more)),
        node("next", echo, "a"),
        node("beyond", echo, "next"),
        node("beside", after(1, "B")),
    )
    assert played.statuses["a"] == "failed"
    assert played.value("beside") == "B"
    return played.error("a")


def test_growth_that_can_never_be_joined_is_refused() -> None:
    x = node("a/x", give(1))
    assert refused(x, results=("a/y",)) == "UnknownReference"
    assert refused(x, results=("beside",)) == "UnknownReference"
    assert refused(x, results=("a/x", "a/x")) == "UnknownReference"
    assert refused(x, width=0) == "JoinError"
    assert refused(x, join=Join("quorum", k=2)) == "JoinError"
    assert refused(join=Join("any")) == "JoinError"
    assert refused(join=first_valid()) == "JoinError"


def test_growth_that_does_not_fit_the_graph_is_refused() -> None:
    x, y = node("a/x", give(1), "a/y"), node("a/y", give(1), "a/x")
    assert refused(x, y) == "CycleError"
    assert refused(node("beside", give(1))) == "DuplicateName"
    assert refused(node("a", give(1))) == "DuplicateName"
    assert refused(node("a/x", give(1)), node("a/x", give(2))) == "DuplicateName"
    assert refused(node("a/x", echo, "nobody")) == "UnknownReference"


@pytest.mark.parametrize("target", ["a", "next", "beyond"])
def test_growth_that_waits_for_what_waits_for_it_is_refused(target: str) -> None:
    assert refused(node("a/x", echo, target)) == "CycleError"
    assert refused(node("a/x", give(1)), node("a/y", echo, "a/x", target)) == "CycleError"


@pytest.mark.parametrize("target", ["top", "next"])
def test_growth_that_waits_for_an_enclosing_scope_is_refused(target: str) -> None:
    inner = node("a", grow(node("a/x", echo, target)))
    played = play(node("top", grow(inner)), node("next", echo, "top"))
    assert played.error("a") == "CycleError"


def test_growth_of_two_nodes_that_wait_for_each_other_is_refused_to_the_second() -> None:
    async def wait_for_b(context: NodeContext, inputs: Inputs) -> Expand:
        return Expand((node("a/x", echo, "b"),), (NodeId("a/x"),))

    async def wait_for_a(context: NodeContext, inputs: Inputs) -> Expand:
        return Expand((node("b/x", echo, "a"),), (NodeId("b/x"),))

    played = play(node("a", wait_for_b), node("b", wait_for_a))
    assert played.error("b") == "CycleError"
    assert played["a/x"].status == "skipped"


def test_an_append_that_is_refused_changes_nothing() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> str:
        for children in (
            [node("a/x", give(1)), node("a/y", echo, "nobody")],
            [node("a/x", give(1)), node("b", give(1))],
            [node("a/x", echo, "a")],
        ):
            with pytest.raises(BuildError):
                context.append(children)
        return "fine"

    played = play(node("a", work), node("b", give(2)))
    assert played.statuses == {"a": "succeeded", "b": "succeeded"}
    assert not played.all(GraphGrew)


def test_growth_of_nothing_is_an_empty_list() -> None:
    assert play(node("a", grow())).value("a") == []
    assert play(node("a", grow(join=Join("best_effort")))).value("a") == []


def test_children_that_nobody_joins_hold_the_node_up() -> None:
    played = play(node("a", grow(node("a/x", give(1)), node("a/y", after(3, 1)), results=("a/x",))))
    assert played.value("a") == [1]
    assert played.ended_s("a") == 3


def test_an_early_join_cancels_all_that_was_appended() -> None:
    children = node("a/x", after(1, 1)), node("a/y", for_ever), node("a/helper", for_ever)
    played = play(
        node("a", grow(*children, results=("a/x", "a/y"), join=first_valid())),
    )
    assert played.ended_s("a") == 1
    assert played.result.status == "succeeded"


def test_a_fallback_and_a_degrade_node_are_checked_when_the_graph_is_built() -> None:
    def build(**policy: Any) -> None:
        play(node("a", give(1), **policy), node("next", echo, "a"))

    with pytest.raises(UnknownReference, match="nobody"):
        build(fallback=node("s", echo, "nobody"))
    with pytest.raises(BuildError, match="wait for each other"):
        build(degrade=node("s", give(1), fallback=node("t", echo, "next")))


def test_a_child_may_wait_for_a_child_of_another_scope() -> None:
    async def slow(context: NodeContext, inputs: Inputs) -> Expand:
        await asyncio.sleep(1)
        return Expand((node("b/x", echo, Edge(NodeId("a/x"), "v")),), (NodeId("b/x"),))

    played = play(node("a", grow(node("a/x", after(3, "X")))), node("b", slow))
    assert played.value("b") == [{"v": "X"}]
