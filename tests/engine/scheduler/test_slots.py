"""Who may run at once, and who goes first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import after, echo, fail, for_ever, give, node, play, script
from weft.core.errors import ModelUnavailable
from weft.core.ids import NodeId
from weft.engine import AskHuman, Expand, Inputs, Node, NodeContext, NodeFn, Retry


class Counted:
    """Makes works that count, from inside, how many of them run."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    def work(self, seconds: float = 1.0, value: Any = 1) -> NodeFn:
        async def work(_: NodeContext, inputs: Inputs) -> Any:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.now -= 1
            return value

        return work


def test_without_limits_everything_that_is_ready_runs() -> None:
    counted = Counted()
    played = play(*(node(f"n{i}", counted.work()) for i in range(50)))
    assert (counted.most, played.result.wall_s) == (50, 1)


@pytest.mark.parametrize("slots", [1, 3, 7, 50, 1000])
def test_max_concurrency_is_used_and_never_exceeded(slots: int) -> None:
    counted = Counted()
    played = play(*(node(f"n{i}", counted.work()) for i in range(50)), max_concurrency=slots)
    assert counted.most == min(50, slots)
    assert played.result.wall_s == -(-50 // slots)


def test_each_resource_has_slots_of_its_own() -> None:
    model, tool = Counted(), Counted()
    played = play(
        *(node(f"m{i}", model.work(), resource="model") for i in range(8)),
        *(node(f"t{i}", tool.work(), resource="tool") for i in range(8)),
        *(node(f"f{i}", after(1, 1), resource="unlimited") for i in range(8)),
        limits={"model": 2, "tool": 4},
    )
    assert (model.most, tool.most, played.result.wall_s) == (2, 4, 4)
    assert max(played.ended_s(f"f{i}") for i in range(8)) == 1


def test_both_limits_hold_together_and_a_full_resource_does_not_block_others() -> None:
    model, tool = Counted(), Counted()
    played = play(
        *(node(f"m{i}", model.work(), resource="model", weight=9) for i in range(4)),
        *(node(f"t{i}", tool.work(), resource="tool") for i in range(4)),
        limits={"model": 1},
        max_concurrency=2,
    )
    assert (model.most, tool.most, played.result.wall_s) == (1, 1, 4)


def test_the_longest_remaining_critical_path_goes_first() -> None:
    played = play(
        node("leaf", give(1)),
        node("short", give(1)),
        node("after_short", give(1), "short"),
        node("long", give(1)),
        node("a", give(1), "long"),
        node("b", give(1), "a"),
        max_concurrency=1,
    )
    assert played.start_order == ["long", "short", "a", "leaf", "after_short", "b"]


def test_weights_count_along_the_path() -> None:
    played = play(
        node("light", give(1)),
        node("a", give(1), "light"),
        node("b", give(1), "a"),
        node("heavy", give(1), weight=10),
        max_concurrency=1,
    )
    assert played.start_order[0] == "heavy"


def test_ties_go_in_declared_order() -> None:
    names = ["d", "b", "a", "c"]
    assert play(*(node(n, give(1)) for n in names), max_concurrency=1).start_order == names


def test_appended_nodes_are_as_urgent_as_what_waits_for_their_parent() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = (node("grow/x", give(1)),)
        return Expand(children, ("grow/x",))  # type: ignore[arg-type]

    played = play(
        node("grow", work),
        node("next", give(1), "grow"),
        node("third", give(1), "next"),
        node("beside", give(1)),
        node("beside2", give(1), "beside"),
        max_concurrency=1,
    )
    assert played.start_order[:2] == ["grow", "grow/x"]


def test_a_context_knows_its_urgency() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> int:
        return context.priority

    played = play(node("a", work, weight=0.5), node("b", work, "a"), node("c", work, "b"))
    assert [played.value(n) for n in "abc"] == [2500, 2000, 1000]


def composite(*children: Node) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        return Expand(children, tuple(child.id for child in children))

    return work


@pytest.mark.parametrize(
    "work",
    [
        composite(node("a/x", after(5, 1))),
        give(AskHuman("go?")),
        script(ModelUnavailable("x"), "again"),
    ],
)
def test_what_waits_holds_no_slot(work: NodeFn) -> None:
    played = play(
        node("a", work, weight=9, resource="r", retry=Retry(delay_s=5, jitter=0)),
        node("b", after(1, "B"), resource="r"),
        limits={"r": 1},
        at={6: lambda run: run.answer(NodeId("a"), "yes") if run.questions else None},
    )
    assert played.ended_s("b") == 1
    assert played["a"].ok


@pytest.mark.parametrize("stopped_by", ["timeout", "cancel", "join"])
def test_what_is_stopped_gives_its_slot_back(stopped_by: str) -> None:
    timeout_s = 1 if stopped_by == "timeout" else None
    nodes = [
        node("a", for_ever, weight=9, resource="r", timeout_s=timeout_s),
        node("b", after(1, "B"), resource="r"),
        node("fast", after(1, 1)),
    ]
    if stopped_by == "join":
        from weft.engine import first_valid

        nodes.append(node("join", echo, "a", "fast", join=first_valid()))
    at = {1.0: lambda run: run.cancel("no", NodeId("a"))} if stopped_by == "cancel" else {}
    played = play(*nodes, limits={"r": 1}, at=at)
    assert (played.started_s("b"), played.ended_s("b")) == (1, 2)


def test_what_is_cancelled_in_the_queue_never_starts() -> None:
    played = play(
        node("a", after(2, 1), weight=9),
        node("b", give(1)),
        node("c", give(1)),
        max_concurrency=1,
        at={1: lambda run: run.cancel("no", NodeId("b"))},
    )
    assert played["b"].attempts == 0
    assert played.ended_s("b") == 1
    assert played.value("c") == 1


def test_who_waits_for_a_child_lets_it_have_the_slot() -> None:
    """With one slot, a work that waits for what it appended would otherwise wait for ever."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        context.append([node("a/x", after(1, "X"))])
        return (await context.outcome("a/x")).value  # type: ignore[arg-type]

    assert play(node("a", work), max_concurrency=1).value("a") == "X"


def test_a_failing_node_gives_its_slot_back() -> None:
    played = play(
        node("a", fail(ValueError("x")), weight=9), node("b", give("B")), max_concurrency=1
    )
    assert played.value("b") == "B"


@pytest.mark.parametrize("bad", [{"max_concurrency": 0}, {"limits": {"model": 0}}])
def test_a_limit_of_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        play(node("a", give(1)), **bad)
