"""One instance of a body per item: order, width, joins, and items that stream into consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.engine.virtual_run import (
    WatchedClock,
    after,
    assert_nothing_left,
    echo,
    ended,
    fail,
    for_ever,
    give,
    node,
    play,
)
from weft.core.budget import Budget
from weft.core.errors import ModelUnavailable
from weft.core.ids import NodeId, inside
from weft.engine import (
    BudgetLimit,
    Edge,
    Expand,
    Graph,
    Inputs,
    Join,
    Node,
    NodeContext,
    NodeFn,
    Policy,
    Retry,
    Run,
    Skip,
    StreamedItems,
    best_effort,
    first_valid,
    quorum,
)
from weft.engine.graph.node import ANY
from weft.engine.kinds import Body, Fragment, fold, map_over, reduce_with


def each(work: NodeFn, **policy: Any) -> Body:
    """A body of one node that does `work` with "item" and "index" among its inputs."""

    def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
        given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
        return Fragment((Node(scope, work, edges, given, policy=Policy(**policy)),), scope)

    return body


async def wait_item(_: NodeContext, inputs: Inputs) -> Any:
    """Takes as long as the item says."""
    await asyncio.sleep(inputs["item"])
    return inputs["item"] * 10


async def wait_one(_: NodeContext, inputs: Inputs) -> Any:
    await asyncio.sleep(1)
    return inputs["item"] + 1


def stream(source: str, name: str = "xs") -> Edge:
    return Edge(NodeId(source), name, stream=True)


def xs(values: Any) -> dict[str, Any]:
    return {"xs": values}


def mapped(name: str, body: Body, values: Any, **options: Any) -> Node:
    return node(name, map_over("xs", body, **options), given=xs(values))


def test_results_keep_the_order_of_the_items() -> None:
    played = play(mapped("m", each(wait_item), [3, 1, 2]))
    assert played.value("m") == [30, 10, 20]
    assert played.result.wall_s == 3
    assert [played.ended_s(f"m[{i}]") for i in range(3)] == [3, 1, 2]


def test_an_empty_list_passes() -> None:
    assert play(mapped("m", each(wait_item), [])).value("m") == []
    assert play(mapped("m", each(wait_item), (), join=best_effort())).value("m") == []


@pytest.mark.parametrize("join", [ANY, quorum(1), first_valid()])
def test_an_empty_list_cannot_give_a_winner(join: Join) -> None:
    assert play(mapped("m", each(wait_item), [], join=join)).error("m") == "JoinError"


@pytest.mark.parametrize("value", ["text", b"bytes", 3, None, {"a": 1}, iter([1])])
def test_what_is_no_list_is_refused(value: Any) -> None:
    played = play(mapped("m", each(wait_item), value))
    assert played.error("m") == "TypeMismatch"
    assert "a map needs a list" in str(played["m"].failure)


def test_items_beyond_the_width_wait() -> None:
    played = play(mapped("m", each(wait_one), list(range(5)), width=2))
    assert [played.started_s(f"m[{i}]") for i in range(5)] == [0, 0, 1, 1, 2]
    assert played.value("m") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("width", [0, -1])
def test_a_width_of_nothing_is_refused(width: int) -> None:
    assert play(mapped("m", each(wait_one), [1], width=width)).error("m") == "JoinError"


def test_a_failed_item_makes_room_and_the_others_go_on() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        if inputs["item"] == 0:
            raise ValueError("nothing")
        return inputs["item"]

    played = play(mapped("m", each(work), [0, 1, 2], width=1))
    assert played.error("m") == "JoinUnsatisfied"
    assert (played.value("m[1]"), played.value("m[2]")) == (1, 2)
    assert played.ended_s("m") == 3


def test_an_item_that_tries_again_keeps_its_place() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        if context.attempt == 1 and inputs["item"] == 0:
            raise ModelUnavailable("x")
        await asyncio.sleep(1)
        return inputs["item"]

    body = each(work, retry=Retry(delay_s=2, jitter=0))
    played = play(mapped("m", body, [0, 1], width=1))
    assert played.started_s("m[1]") == 3
    assert played.value("m") == [0, 1]


def test_a_cancelled_item_makes_room() -> None:
    played = play(
        mapped("m", each(wait_item), [100, 1, 1], width=1, join=best_effort()),
        at={2: lambda run: run.cancel("too long", NodeId("m[0]"))},
    )
    assert played.value("m") == [10, 10]
    assert played.result.wall_s == 4
    assert played.result.status == "succeeded"


def test_items_left_out_on_purpose_do_not_appear() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return inputs["item"] if inputs["item"] % 2 else Skip("even")

    assert play(mapped("m", each(work), [1, 2, 3])).value("m") == [1, 3]


@pytest.mark.parametrize(
    ("join", "expected", "wall_s"),
    [
        (quorum(2), [10, 20], 2),
        (ANY, [10], 1),
        (first_valid(lambda v: v > 10), [20], 2),
    ],
)
def test_enough_items_decide_and_the_rest_is_cancelled(
    join: Join, expected: list[int], wall_s: float
) -> None:
    played = play(mapped("m", each(wait_item), [3, 1, 2], join=join), node("next", echo, "m"))
    assert played.value("next") == {"m": expected}
    assert played.result.wall_s == wall_s
    assert played.statuses["m[0]"] == "cancelled"
    assert played.result.status == "succeeded"


def test_an_inner_early_stop_does_not_touch_the_outer_join() -> None:
    def inner(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        given = xs([bindings["item"], 9])
        work = map_over("xs", each(wait_item), join=first_valid())
        return Fragment((Node(scope, work, given=given),), scope)

    played = play(mapped("m", inner, [1, 2]))
    assert played.value("m") == [[10], [20]]
    assert played.result.wall_s == 2


def test_bindings_can_be_renamed() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return inputs["doc"], inputs["number"]

    played = play(mapped("m", each(work), ["a", "b"], bound={"item": "doc", "index": "number"}))
    assert played.value("m") == [("a", 0), ("b", 1)]


def two_steps(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
    first, second = inside(scope, "first"), inside(scope, "second")
    item = bindings["item"]
    edges = (item,) if isinstance(item, Edge) else ()
    given = {} if edges else {"item": item}
    return Fragment(
        (
            Node(first, wait_one, edges, given),
            Node(second, wait_one, (Edge(first, "item"),)),
        ),
        second,
    )


def test_a_body_of_several_nodes_is_one_item() -> None:
    played = play(mapped("m", two_steps, [1, 5], width=1))
    assert played.value("m") == [3, 7]
    assert played.started_s("m[1]") == 2
    assert played.started_s("m[1]/second") == 3


def test_an_item_starts_when_its_own_source_is_done() -> None:
    played = play(
        mapped("one", each(wait_item), [3, 1, 2]),
        node("two", map_over("xs", each(wait_one)), stream("one")),
    )
    assert played.value("two") == [31, 11, 21]
    assert [played.started_s(f"two[{i}]") for i in range(3)] == [3, 1, 2]
    assert played.result.wall_s == 4


def test_three_maps_stream_through_with_bodies_of_several_nodes() -> None:
    played = play(
        mapped("one", two_steps, [0, 10]),
        node("two", map_over("xs", two_steps), stream("one")),
        node("three", map_over("xs", each(wait_item)), stream("two")),
    )
    assert played.value("three") == [40, 140]
    assert played.ended_s("three[0]") == 4 + 4


def test_streaming_equals_waiting() -> None:
    def chain(streaming: bool) -> list[Any]:
        edge = Edge(NodeId("one"), "xs", stream=streaming)
        played = play(
            mapped("one", each(wait_item), [3, 1, 2], width=2),
            node("two", map_over("xs", each(wait_one)), edge),
        )
        return played.value("two")  # type: ignore[no-any-return]

    assert chain(streaming=True) == chain(streaming=False)


def test_a_failed_item_cuts_off_only_its_own_successor() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(inputs["item"])
        if inputs["item"] == 1:
            raise ValueError("one")
        return inputs["item"]

    played = play(
        mapped("one", each(work), [3, 1, 2]),
        node("two", map_over("xs", each(wait_one), join=best_effort(0)), stream("one")),
    )
    assert played.error("one") == "JoinUnsatisfied"
    assert played.value("two") == [4, 0, 3]


def test_items_left_out_upstream_are_left_out_downstream() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return inputs["item"] if inputs["item"] != 1 else Skip()

    played = play(
        mapped("one", each(work), [0, 1, 2]),
        node("two", map_over("xs", each(wait_one)), stream("one")),
    )
    assert played.value("two") == [1, 3]


def test_a_consumer_that_comes_late_gets_the_finished_list() -> None:
    played = play(
        mapped("one", each(wait_one), [1, 2]),
        node("slow", after(5, 1)),
        node("two", echo, stream("one"), Edge(NodeId("slow"))),
    )
    assert played.value("two") == {"xs": [2, 3]}


def test_what_is_no_map_arrives_whole_on_a_streaming_edge() -> None:
    played = play(node("one", after(1, [1, 2])), node("two", echo, stream("one")))
    assert played.value("two") == {"xs": [1, 2]}


@pytest.mark.parametrize(
    "policy",
    [{"retry": Retry()}, {"fallback": node("s", give([]))}, {"default": []}],
)
def test_items_that_may_be_replaced_do_not_stream(policy: dict[str, Any]) -> None:
    played = play(
        node("one", map_over("xs", each(wait_item)), given=xs([1, 2]), **policy),
        node("two", echo, stream("one")),
    )
    assert played.value("two") == {"xs": [10, 20]}
    assert played.started_s("two") == 2


def test_items_of_a_growth_that_goes_on_do_not_stream() -> None:
    """Its value is not the list of its items, and it may grow again; nobody may start early."""

    async def again(context: NodeContext, values: list[Any]) -> Any:
        async def last(_: NodeContext, more: list[Any]) -> Any:
            return values + more

        child = node("one[1]", after(2, 2))
        return Expand((child,), (child.id,), then=last, items=True)

    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        child = node("one[0]", after(1, 1))
        return Expand((child,), (child.id,), then=again, items=True)

    played = play(
        node("one", work),
        node("slow", after(9, 1)),
        node("two", echo, stream("one"), Edge(NodeId("slow"))),
        node("three", echo, stream("one")),
    )
    assert played.value("two") == played.value("three") == {"xs": [1, 2]}
    assert played.started_s("two") == 9
    assert played.started_s("three") == 3


def test_a_map_that_fails_before_it_grows_cuts_off_its_stream() -> None:
    played = play(mapped("one", each(wait_item), 3), node("two", echo, stream("one")))
    assert played["two"].status == "skipped"


def test_fold_takes_items_in_declared_order_while_they_are_produced() -> None:
    seen: list[tuple[float, Any]] = []
    clock = WatchedClock()

    def step(text: str, item: int) -> str:
        seen.append((clock.now(), item))
        return f"{text}{item},"

    played = play(
        mapped("m", each(wait_item), [2, 1, 3]),
        node("f", fold(step, "", "xs"), stream("m")),
        clock=clock,
    )
    assert played.value("f") == "20,10,30,"
    assert seen == [(2, 20), (2, 10), (3, 30)]


def test_fold_and_reduce_may_await() -> None:
    async def step(total: int, item: int) -> int:
        await asyncio.sleep(1)
        return total + item

    async def whole(values: list[int]) -> int:
        await asyncio.sleep(1)
        return sum(values)

    played = play(
        mapped("m", each(wait_item), [1, 2]),
        node("f", fold(step, 0, "xs"), stream("m")),
        node("r", reduce_with(whole, "xs"), stream("m")),
        node("g", reduce_with(sum, "xs"), Edge(NodeId("m"), "xs")),
    )
    assert (played.value("f"), played.value("r"), played.value("g")) == (30, 30, 30)
    assert played.ended_s("f") == 3


def test_a_fold_over_a_failed_item_fails_with_it() -> None:
    def add(total: int, item: int) -> int:
        return total + item

    played = play(
        mapped("m", each(fail(ValueError("x"), 1)), [1]), node("f", fold(add, 0, "xs"), stream("m"))
    )
    assert played.error("f") == "RunError"
    assert "item m[0] failed" in str(played["f"].failure)


@pytest.mark.parametrize("slots", [1, 2])
def test_a_fold_does_not_keep_its_items_from_running(slots: int) -> None:
    """The item waits for its next attempt, the fold takes the slot; the item must get it back."""

    async def flaky(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        if context.attempt == 1:
            raise ModelUnavailable("x")
        return inputs["item"]

    body = each(flaky, retry=Retry(delay_s=5, jitter=0))
    played = play(
        mapped("m", body, [1, 2, 3]),
        node("f", fold(lambda a, b: a + b, 0, "xs"), stream("m")),
        max_concurrency=slots,
    )
    assert played.value("f") == 6


def test_a_fold_that_is_cancelled_leaves_no_generator_behind() -> None:
    tasks = 0
    clock = WatchedClock()

    async def slow_step(total: int, item: int) -> int:
        await asyncio.sleep(50)
        return total + item

    async def main() -> None:
        nonlocal tasks
        m = mapped("m", each(wait_item), [1, 2])
        run = Run(Graph("g", [m, node("f", fold(slow_step, 0, "xs"), stream("m"))]), clock=clock)
        loop = asyncio.get_running_loop()
        loop.call_later(5, run.cancel)
        await ended(run)

        def count(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
            nonlocal tasks
            tasks += 1
            return asyncio.Task(work, loop=loop, **options)

        loop.set_task_factory(count)
        await assert_nothing_left(clock)
        assert tasks == 0, "a forgotten generator was closed by a task of nobody's"

    clock.run(main())


def test_a_streaming_consumer_may_end_before_its_source() -> None:
    async def first_only(context: NodeContext, inputs: Inputs) -> Any:
        streamed = inputs["xs"]
        assert isinstance(streamed, StreamedItems)
        async for value in context.items(streamed):
            return value
        return None

    played = play(mapped("m", each(wait_item), [1, 5]), node("f", first_only, stream("m")))
    assert (played.value("f"), played.ended_s("f"), played.ended_s("m")) == (10, 1, 5)


def test_a_cancelled_map_ends_its_streaming_consumer() -> None:
    played = play(
        mapped("m", each(for_ever), [1, 2]),
        node("f", fold(lambda a, b: a, 0, "xs"), stream("m")),
        node("n", map_over("xs", each(wait_one)), stream("m")),
        at={1: lambda run: run.cancel("enough", NodeId("m"))},
    )
    assert played.statuses["m"] == "cancelled"
    assert played.statuses["f"] == played.statuses["n"] == "failed"
    assert played.result.wall_s == 1


def test_each_item_may_have_a_budget_of_its_own() -> None:
    body = each(wait_item, limit=BudgetLimit(Budget(seconds=2)))
    played = play(mapped("m", body, [1, 3], join=best_effort(None)))
    assert played.value("m") == [10, None]
    assert played.error("m[1]") == "BudgetExceeded"
