"""When a node has enough of its inputs, what it then receives, and what becomes of the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, give, node, play
from weft.core.errors import NodeFailed
from weft.core.ids import NodeId
from weft.engine import (
    ANY,
    Edge,
    Expand,
    Inputs,
    Join,
    Node,
    NodeContext,
    Skip,
    best_effort,
    first_valid,
    quorum,
)

BOOM = NodeFailed("boom")
LEFT_OUT = give(Skip("not wanted"))


def test_all_waits_for_the_slowest() -> None:
    played = play(node("a", after(1, "A")), node("b", after(3, "B")), node("join", echo, "a", "b"))
    assert played.value("join") == {"a": "A", "b": "B"}
    assert played.started_s("join") == 3


def test_all_is_skipped_at_the_first_failure_and_the_others_keep_their_results() -> None:
    played = play(
        node("bad", fail(BOOM, 1)),
        node("good", after(5, "kept")),
        node("join", echo, "bad", "good"),
        node("beyond", echo, "join"),
    )
    assert played.statuses == {
        "bad": "failed",
        "good": "succeeded",
        "join": "skipped",
        "beyond": "skipped",
    }
    assert played.ended_s("join") == played.ended_s("beyond") == 1
    assert played.value("good") == "kept"
    assert "needs bad, which failed" in str(played["join"].failure)
    assert "needs bad, which failed" in str(played["beyond"].failure)


def test_all_that_cancels_the_rest_stops_waiting_branches_at_the_first_failure() -> None:
    played = play(
        node("bad", fail(BOOM, 1)),
        node("slow", after(9, "late")),
        node("join", echo, "bad", "slow", join=Join(cancel_rest=True)),
    )
    assert played.statuses == {"bad": "failed", "slow": "cancelled", "join": "skipped"}
    assert played.ended_s("slow") == 1


def test_an_input_left_out_on_purpose_leaves_the_node_out_too() -> None:
    played = play(node("gone", LEFT_OUT), node("next", echo, "gone"), node("last", echo, "next"))
    assert set(played.statuses.values()) == {"skipped"}
    assert [played[name].failure for name in ("gone", "next", "last")] == [None] * 3
    assert played.result.status == "succeeded"


def optional(name: str, *sources: str) -> Node:
    """A node that needs `a`, and takes `sources` where they have a value."""
    edges = (Edge(NodeId(source), source, optional=source != "a") for source in ("a", *sources))
    return Node(NodeId(name), echo, tuple(edges))


@pytest.mark.parametrize("gone_s", [1, 3])
def test_an_optional_input_left_out_is_waited_for_and_has_no_value(gone_s: float) -> None:
    played = play(
        node("a", after(2, "A")), node("gone", after(gone_s, Skip())), optional("next", "gone")
    )
    assert played.value("next") == {"a": "A", "gone": None}
    assert played.started_s("next") == max(2, gone_s)


def test_an_optional_input_that_failed_and_one_needed_twice_count_as_ever() -> None:
    bad = play(node("a", after(1, "A")), node("bad", fail(BOOM, 2)), optional("next", "bad"))
    assert bad.error("next") == "Upstream"
    twice = Node(NodeId("next"), echo, (Edge(NodeId("a"), "x", optional=True), Edge(NodeId("a"))))
    both = play(node("a", LEFT_OUT), twice)
    assert both.statuses == {"a": "skipped", "next": "skipped"}


@pytest.mark.parametrize(("gone_s", "bad_s"), [(1, 2), (2, 1)])
def test_a_failed_input_counts_more_than_one_left_out_whatever_the_order(
    gone_s: float, bad_s: float
) -> None:
    played = play(
        node("gone", after(gone_s, Skip())),
        node("bad", fail(BOOM, bad_s)),
        node("join", echo, "gone", "bad"),
    )
    assert played.error("join") == "Upstream"
    assert played.ended_s("join") == bad_s


def test_any_takes_the_first_success_and_lets_the_others_run() -> None:
    played = play(
        node("bad", fail(BOOM)),
        node("slow", after(5, "slow")),
        node("fast", after(2, "fast")),
        node("join", echo, "bad", "slow", "fast", join=ANY),
    )
    assert played.value("join") == {"fast": "fast"}
    assert played.started_s("join") == 2
    assert played.value("slow") == "slow"


def test_quorum_takes_k_in_declared_order_and_cancels_the_others() -> None:
    played = play(
        node("a", after(9, "A")),
        node("b", after(2, "B")),
        node("c", after(1, "C")),
        node("join", echo, "a", "b", "c", join=quorum(2)),
    )
    assert list(played.value("join").items()) == [("b", "B"), ("c", "C")]
    assert played["a"].status == "cancelled"
    assert played.ended_s("a") == 2


def test_quorum_that_does_not_cancel_lets_the_others_finish() -> None:
    played = play(
        node("a", after(9, "A")),
        node("b", after(1, "B")),
        node("join", echo, "a", "b", join=quorum(1, cancel_rest=False)),
    )
    assert played.value("a") == "A"
    assert played.started_s("join") == 1


def test_a_quorum_fails_as_soon_as_it_cannot_be_met_and_cancels_the_others() -> None:
    played = play(
        node("a", fail(BOOM, 1)),
        node("b", fail(BOOM, 2)),
        node("c", after(9, "C")),
        node("join", echo, "a", "b", "c", join=quorum(2)),
    )
    assert played.error("join") == "JoinUnsatisfied"
    assert "0 of 3 branches succeeded, 2 needed: 2 branches: boom" in str(played["join"].failure)
    assert played.ended_s("join") == played.ended_s("c") == 2


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (["x", "y", "x", "z"], "2 branches: x; y; z"),
        (["x", "y", "z", "v", "w", "v"], "x; y; z and 3 more"),
        (["v", "v", "w"], "2 branches: v; w"),
    ],
)
def test_a_join_says_a_reason_once_that_several_branches_share(
    messages: list[str], told: str
) -> None:
    names = [f"n{number}" for number in range(len(messages))]
    branches = [
        node(name, fail(NodeFailed(message), len(messages) - place))
        for place, (name, message) in enumerate(zip(names, messages, strict=True))
    ]
    failure = play(*branches, node("join", echo, *names, join=ANY))["join"].failure
    assert failure is not None
    assert failure.message.endswith(f"needed: {told}")


@pytest.mark.parametrize("join", [ANY, quorum(1), first_valid(), quorum(2)])
def test_a_join_whose_branches_were_all_left_out_is_left_out(join: Join) -> None:
    played = play(node("a", LEFT_OUT), node("b", LEFT_OUT), node("join", echo, "a", "b", join=join))
    assert played.statuses["join"] == "skipped"
    assert played["join"].failure is None


def test_any_fails_when_nothing_succeeds_even_when_some_were_left_out() -> None:
    played = play(
        node("a", LEFT_OUT), node("b", fail(BOOM)), node("join", echo, "a", "b", join=ANY)
    )
    assert played.error("join") == "JoinUnsatisfied"


def test_first_valid_passes_over_what_is_not_valid() -> None:
    played = play(
        node("odd", after(1, 3)),
        node("even", after(2, 4)),
        node("late", after(9, 6)),
        node("join", echo, "odd", "even", "late", join=first_valid(lambda v: v % 2 == 0)),
    )
    assert played.value("join") == {"even": 4}
    assert played["late"].status == "cancelled"
    assert played.value("odd") == 3


def test_a_test_for_validity_that_raises_means_not_valid() -> None:
    def valid(value: Any) -> bool:
        return bool(value["ok"])

    played = play(
        node("text", after(1, "no mapping")),
        node("map", after(2, {"ok": True})),
        node("join", echo, "text", "map", join=first_valid(valid)),
    )
    assert played.value("join") == {"map": {"ok": True}}


def test_first_valid_says_why_nothing_was_valid() -> None:
    played = play(
        node("a", give(1)),
        node("b", fail(BOOM)),
        node("join", echo, "a", "b", join=first_valid(lambda v: v > 1)),
    )
    assert "the value of a is not valid; boom" in str(played["join"].failure)


def test_best_effort_waits_for_all_and_fills_in_the_default() -> None:
    played = play(
        node("a", fail(BOOM, 3)),
        node("b", after(1, "B")),
        node("gone", LEFT_OUT),
        node("join", echo, "a", "b", "gone", join=best_effort("?")),
    )
    assert played.value("join") == {"a": "?", "b": "B"}
    assert played.started_s("join") == 3


def test_best_effort_without_default_drops_what_failed() -> None:
    played = play(
        node("a", fail(BOOM)),
        node("b", give("B")),
        node("join", echo, "a", "b", join=best_effort()),
    )
    assert played.value("join") == {"b": "B"}


@pytest.mark.parametrize("delays", [(2, 2, 2), (2, 2, 9)])
def test_ties_in_one_turn_count_in_declared_order(delays: tuple[float, ...]) -> None:
    nodes = [node(name, after(delay, name)) for name, delay in zip("abc", delays, strict=True)]
    played = play(*nodes, node("join", echo, "c", "b", "a", join=first_valid()))
    assert played.value("join") == {"a": "a"}
    assert played["c"].status == "cancelled"


def test_losers_that_somebody_else_needs_go_on() -> None:
    played = play(
        node("fast", after(1, "fast")),
        node("slow", after(5, "slow")),
        node("join", echo, "fast", "slow", join=first_valid()),
        node("other", echo, "slow"),
    )
    assert played.value("other") == {"slow": "slow"}


def test_losers_whose_other_consumer_has_already_decided_are_let_go() -> None:
    played = play(
        node("fast", after(1, "fast")),
        node("faster", after(0.5, "faster")),
        node("slow", after(5, "slow")),
        node("first", echo, "faster", "slow", join=first_valid()),
        node("second", echo, "fast", "slow", join=first_valid()),
    )
    assert played["slow"].status == "cancelled"
    assert played.ended_s("slow") == 1


def test_losers_that_are_kept_go_on() -> None:
    played = play(
        node("fast", after(1, "fast")),
        node("slow", after(5, "slow")),
        node("join", echo, "fast", "slow", join=first_valid()),
        keep=["slow"],
    )
    assert played.value("slow") == "slow"


def test_what_only_a_loser_needed_is_let_go_with_it() -> None:
    played = play(
        node("root", after(0, 1)),
        node("shared", after(9, 1), "root"),
        node("far", after(9, 1), "root"),
        node("near", after(0, 1), "far", "shared"),
        node("fast", after(1, 1), "root"),
        node("join", echo, "near", "fast", join=first_valid()),
        node("other", after(0), "shared"),
    )
    assert played.statuses == {
        "root": "succeeded",
        "shared": "succeeded",
        "far": "cancelled",
        "near": "cancelled",
        "fast": "succeeded",
        "join": "succeeded",
        "other": "succeeded",
    }
    assert played.ended_s("far") == 1


def test_a_loser_is_cancelled_with_everything_inside_it() -> None:
    seen: list[str] = []

    async def inner(context: NodeContext, inputs: Inputs) -> None:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            seen.append(context.node)
            raise

    async def outer(context: NodeContext, inputs: Inputs) -> Expand:
        child = Node(NodeId(f"{context.scope}/in"), inner)
        return Expand((child,), (child.id,))

    played = play(
        node("slow", outer),
        node("fast", after(1, "fast")),
        node("join", echo, "slow", "fast", join=first_valid()),
    )
    assert seen == ["slow/in"]
    assert played.result.status == "succeeded"
    assert played.ended_s("slow/in") == played.ended_s("slow") == 1


def test_a_run_whose_join_let_losers_go_has_succeeded() -> None:
    played = play(
        node("fast", after(1, "fast")),
        node("slow", after(5, "slow")),
        node("join", echo, "fast", "slow", join=first_valid()),
    )
    assert played["slow"].status == "cancelled"
    assert played.result.status == "succeeded"
    assert played.result.reasons == ()


def two_of(first: str, second: str) -> tuple[Edge, ...]:
    return (Edge(NodeId(first), "x"), Edge(NodeId(first), "y"), Edge(NodeId(second), "z"))


def test_a_branch_that_feeds_two_inputs_is_one_branch() -> None:
    played = play(
        node("bad", fail(BOOM)),
        node("good", after(1, "good")),
        node("any", echo, *two_of("bad", "good"), join=ANY),
        node("most", echo, *two_of("bad", "good"), join=best_effort("?")),
        node("both", echo, *two_of("good", "bad"), join=quorum(1)),
    )
    assert played.value("any") == {"z": "good"}
    assert played.value("most") == {"x": "?", "y": "?", "z": "good"}
    assert played.value("both") == {"x": "good", "y": "good"}


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (Join(), None),
        (ANY, [2]),
        (quorum(2), [2, 3]),
        (first_valid(lambda v: v > 2), [3]),
        (best_effort(0), [0, 2, 3]),
        (best_effort(), [2, 3]),
    ],
)
def test_children_are_joined_like_inputs(join: Join, expected: list[int] | None) -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = (
            node("p/a", fail(BOOM)),
            node("p/b", after(1, 2)),
            node("p/c", after(2, 3)),
        )
        return Expand(children, tuple(child.id for child in children), join=join)

    played = play(node("p", work))
    if expected is None:
        assert played.error("p") == "JoinUnsatisfied"
        assert played.value("p/c") == 3, "healthy children keep running"
    else:
        assert played.value("p") == expected


def test_a_child_that_its_parent_joins_is_needed_by_it() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = (
            node("p/slow", after(5, "slow")),
            node("p/fast", after(1, "fast")),
            node("p/first", echo, "p/slow", "p/fast", join=first_valid()),
        )
        return Expand(children, (NodeId("p/slow"), NodeId("p/first")))

    played = play(node("p", work))
    assert played.value("p") == ["slow", {"p/fast": "fast"}]


def test_an_appended_join_that_is_decided_at_once_lets_go_only_what_nobody_needs() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = (
            node("p/first", echo, "before", "p/idle", "p/used", join=first_valid()),
            node("p/idle", after(5, "idle")),
            node("p/used", after(5, "used")),
            node("p/user", echo, "p/used"),
        )
        return Expand(children, (NodeId("p/first"), NodeId("p/user")))

    played = play(node("before", give("B")), node("p", work, Edge(NodeId("before"))))
    assert played["p/idle"].status == "cancelled"
    assert played.value("p") == [{"before": "B"}, {"p/used": "used"}]
