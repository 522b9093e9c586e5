"""Loop, branch, sub-workflow: the works that grow one instance of a body at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play, script
from weft.core.errors import ModelUnavailable
from weft.core.events import NodeLogged
from weft.core.ids import NodeId, inside
from weft.engine import Edge, Inputs, Node, NodeContext, NodeFn, Retry, Skip
from weft.engine.kinds import Body, Fragment, branch, loop, subgraph


def one(work: NodeFn) -> Body:
    """A body of one node called like its scope, which receives the bindings."""

    def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        return Fragment((Node(scope, work, given=bindings),), scope)

    return body


def within(inner: Body) -> Body:
    """`inner` in a scope of its own."""
    return lambda scope, bindings: inner(inside(scope, "x"), bindings)


async def add_one(_: NodeContext, inputs: Inputs) -> int:
    return int(inputs["value"] or 0) + 1


def test_a_loop_repeats_until_its_condition_holds() -> None:
    work = loop(one(add_one), until=lambda v, n: v >= 13, max_iterations=9, start=lambda i: i["x"])
    played = play(node("l", work, given={"x": 10}))
    assert played.value("l") == 13
    assert set(played.statuses) == {"l", "l#1", "l#2", "l#3"}


def test_a_loop_stops_at_its_limit() -> None:
    def counting(on_limit: str) -> NodeFn:
        return loop(one(add_one), until=lambda v, n: False, max_iterations=4, on_limit=on_limit)

    assert play(node("l", counting("last"))).value("l") == 4
    played = play(node("l", counting("fail")))
    assert played.error("l") == "LoopLimit"
    assert "did not hold after 4 iterations" in str(played["l"].failure)


def test_a_loop_runs_at_least_once() -> None:
    work = loop(one(add_one), until=lambda v, n: True, max_iterations=1)
    assert play(node("l", work)).value("l") == 1
    with pytest.raises(ValueError, match="at least once, got 0"):
        loop(one(add_one), until=lambda v, n: True, max_iterations=0)


def test_a_loop_sees_its_iteration_and_renames_its_bindings() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> list[int]:
        return [*(inputs["draft"] or []), inputs["round"]]

    names = {"value": "draft", "iteration": "round"}
    looping = loop(one(work), until=lambda v, n: n == 3, max_iterations=5, bound=names)
    assert play(node("l", looping)).value("l") == [1, 2, 3]


def test_a_loop_fails_with_its_body_and_starts_anew_in_the_next_attempt() -> None:
    async def fragile(context: NodeContext, inputs: Inputs) -> int:
        if context.node == "l#2":
            raise ModelUnavailable("x")
        return int(inputs["iteration"])

    work = loop(one(fragile), until=lambda v, n: v == 3, max_iterations=5)
    played = play(node("l", work, retry=Retry(delay_s=1, jitter=0)))
    assert played.value("l") == 3
    assert set(played.statuses) == {"l", "l#1", "l#2", "l~2#1", "l~2#2", "l~2#3"}
    assert played.result.status == "succeeded"


def test_a_condition_that_raises_fails_the_loop() -> None:
    work = loop(one(add_one), until=lambda v, n: v["no"], max_iterations=2)
    assert play(node("l", work)).error("l") == "NodeFailed"


def test_a_loop_of_a_thousand_iterations() -> None:
    work = loop(one(add_one), until=lambda v, n: v == 1000, max_iterations=1000)
    assert play(node("l", work)).value("l") == 1000


def test_a_loop_is_cancelled_in_the_middle() -> None:
    work = loop(one(after(1, 1)), until=lambda v, n: False, max_iterations=100)
    played = play(node("l", work), at={2.5: lambda run: run.cancel("enough", NodeId("l"))})
    assert played.statuses["l"] == played.statuses["l#3"] == "cancelled"
    assert "l#4" not in played.statuses


def cases() -> dict[str, Body]:
    return {"yes": one(give("Y")), "no": one(give("N")), "not sure": one(give("?"))}


@pytest.mark.parametrize(
    ("chosen", "value", "child"),
    [("yes", "Y", "b/yes"), ("no", "N", "b/no"), ("not sure", "?", "b/case2")],
)
def test_a_branch_runs_the_chosen_body_only(chosen: str, value: str, child: str) -> None:
    played = play(node("b", branch(lambda i: i["c"], cases()), given={"c": chosen}))
    assert played.value("b") == value
    assert set(played.statuses) == {"b", child}


def test_a_branch_without_a_case() -> None:
    def choosing(**options: Any) -> Node:
        return node("b", branch(lambda i: "maybe", cases(), **options))

    assert play(choosing(otherwise=one(give("else")))).value("b") == "else"
    played = play(choosing(skip_unmatched=True), node("next", echo, "b"))
    assert set(played.statuses.values()) == {"skipped"}
    assert [e.text for e in played.all(NodeLogged)] == ["left out: no case for 'maybe'"]
    played = play(choosing())
    assert played.error("b") == "UnknownReference"
    assert "the cases are 'yes', 'no', 'not sure'" in str(played["b"].failure)


def test_a_chooser_that_raises_or_is_no_word_fails_the_branch() -> None:
    assert play(node("b", branch(lambda i: i["no"], cases()))).error("b") == "NodeFailed"
    assert play(node("b", branch(lambda i: [], cases()))).error("b") == "NodeFailed"  # type: ignore[arg-type, return-value]


def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
    a, b = inside(scope, "a"), inside(scope, "b")
    return Fragment(
        (Node(a, after(1, 1), given=bindings), Node(b, after(1, 2), (Edge(a, "a"),))), b
    )


def test_a_sub_workflow_has_the_value_of_its_result() -> None:
    played = play(node("s", subgraph(body)), node("next", echo, "s"))
    assert played.value("next") == {"s": 2}
    assert played.ended_s("s") == 2
    assert set(played.statuses) == {"s", "s/a", "s/b", "next"}


def test_a_sub_workflow_may_run_twice_side_by_side() -> None:
    played = play(node("s", subgraph(body)), node("t", subgraph(body)))
    assert played.result.wall_s == 2
    assert played.result.status == "succeeded"


def test_a_result_that_was_left_out_leaves_the_node_out() -> None:
    skipping = one(give(Skip("not today")))
    played = play(
        node("s", subgraph(within(skipping))),
        node("b", branch(lambda i: "x", {"x": skipping})),
        node("next", echo, "s"),
    )
    assert set(played.statuses.values()) == {"skipped"}
    assert played.result.status == "succeeded"


def test_a_loop_whose_body_was_left_out_sees_no_value() -> None:
    seen: list[Any] = []

    def until(value: Any, number: int) -> bool:
        seen.append((value, number))
        return number == 2

    assert (
        play(node("l", loop(one(give(Skip())), until=until, max_iterations=9))).value("l") is None
    )
    assert seen == [(None, 1), (None, 2)]


def test_a_body_may_hand_on_a_node_from_outside() -> None:
    def outer(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        return Fragment((), NodeId("source"))

    played = play(
        node("source", after(3, "S")),
        node("s", subgraph(outer)),
        node("b", branch(lambda i: "x", {"x": outer})),
        node("l", loop(outer, until=lambda v, n: n == 2, max_iterations=3)),
    )
    assert [played.value(n) for n in "sbl"] == ["S", "S", "S"]
    assert played.result.wall_s == 3


def test_a_sub_workflow_that_fails_names_what_failed_in_it() -> None:
    def failing(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        bad, good = inside(scope, "bad"), inside(scope, "good")
        return Fragment((Node(bad, fail(ValueError("boom"))), node(good, echo, bad)), good)

    played = play(node("s", subgraph(failing)))
    assert "needs s/bad, which failed" in str(played["s"].failure)
    assert played.result.status == "failed"


def test_bindings_are_made_from_the_inputs() -> None:
    work = subgraph(within(one(echo)), lambda inputs: {"n": inputs["source"] + 1})
    assert play(node("source", give(1)), node("s", work, "source")).value("s") == {"n": 2}


def test_a_body_that_is_stuck_is_cut_off_and_repeated() -> None:
    work = script(subgraph(within(one(for_ever))), subgraph(within(one(give("second")))))
    played = play(node("s", work, timeout_s=1, retry=Retry(delay_s=1, jitter=0)))
    assert played.value("s") == "second"
    assert played.statuses == {"s": "succeeded", "s/x": "cancelled", "s~2/x": "succeeded"}
