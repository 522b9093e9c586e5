"""What a work sees of its run, and what it must not see: other nodes' context variables."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from tests.engine.virtual_run import give, node, play, script
from weft.core.errors import ModelUnavailable, ToolRaised
from weft.core.events import NodeLogged, NodeRerouted, NodeStreamed, NodeWaiting
from weft.core.ids import NodeId
from weft.engine import AskHuman, Expand, Graph, Inputs, NodeContext, NodeFn, Retry, Run
from weft.engine.analysis.trace import Trace
from weft.testing import FakeClock

COLOUR = ContextVar("COLOUR", default="none")


def test_what_a_work_says_becomes_events_with_its_name_and_time() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        context.log("begin")
        await asyncio.sleep(2)
        context.stream("he")
        context.stream("llo", tokens=2)

    played = play(node("a", work))
    assert [(e.node, e.text, e.at_s) for e in played.all(NodeLogged)] == [("a", "begin", 0)]
    assert [(e.node, e.text, e.tokens, e.at_s) for e in played.all(NodeStreamed)] == [
        ("a", "he", 0, 2),
        ("a", "llo", 2, 2),
    ]


def test_a_work_says_what_goes_on_in_the_place_of_what_failed() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        first, second = NodeId("a/first"), NodeId("a/second")
        context.append([node("a/first", script(ToolRaised("no")), on_failure="skip")])
        failed = await context.outcome(first)
        assert failed.failure is not None
        context.append([node("a/second", give(2))])
        context.reroute(second, failed.failure)
        return (await context.outcome(second)).value

    played = play(node("a", work))
    assert played.value("a") == 2
    (event,) = played.all(NodeRerouted)
    assert (event.node, event.to, event.failure.error) == ("a", "a/second", "ToolRaised")


def test_a_work_that_waits_for_what_it_appended_is_not_at_work_itself() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        context.append([node("a/child", asleep(4))])
        return (await context.outcome(NodeId("a/child"))).value

    async def asleep_for(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    def asleep(seconds: float) -> NodeFn:
        return lambda *_: asleep_for(seconds)

    trace = Trace()
    played = play(node("a", work), listeners=[trace])
    assert [(e.node, e.at_s) for e in played.all(NodeWaiting)] == [("a", 1)]
    assert (trace.all_busy_s(), trace.wall_s) == (5.0, 5.0)
    assert trace.speed_up() is None


def test_a_work_knows_its_node_and_each_attempt_has_its_own_scope() -> None:
    seen: list[tuple[str, str, int]] = []

    async def note(context: NodeContext, inputs: Inputs) -> str:
        seen.append((context.node, context.scope, context.attempt))
        if context.attempt < 3:
            raise ModelUnavailable("x")
        return "done"

    play(node("a", note, retry=Retry(attempts=3, delay_s=1)))
    assert seen == [("a", "a", 1), ("a", "a~2", 2), ("a", "a~3", 3)]


def test_context_variables_do_not_leak_from_node_to_node() -> None:
    async def paint(_: NodeContext, inputs: Inputs) -> str:
        before = COLOUR.get()
        COLOUR.set("red")
        await asyncio.sleep(1)
        assert COLOUR.get() == "red"
        return before

    played = play(node("a", paint), node("b", paint), node("c", paint, "a"))
    assert [played.value(n) for n in "abc"] == ["none"] * 3
    assert COLOUR.get() == "none"


def test_context_variables_do_not_leak_into_children_later_attempts_or_continuations() -> None:
    seen: dict[str, str] = {}

    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        COLOUR.set("red")

        async def then(context: NodeContext, values: list[Any]) -> Any:
            seen["then"] = COLOUR.get()
            COLOUR.set("blue")
            if context.attempt == 1:
                raise ModelUnavailable("x")
            return AskHuman("go?", then=answered)

        child = node(f"{context.scope}/x", look)
        return Expand((child,), (child.id,), then=then)

    async def answered(context: NodeContext, value: Any) -> None:
        seen["answered"] = COLOUR.get()

    async def look(context: NodeContext, inputs: Inputs) -> None:
        seen[context.node] = COLOUR.get()

    played = play(
        node("a", script(grows, grows), retry=Retry(delay_s=1)),
        at={5: lambda run: run.answer(NodeId("a"), 1)},
    )
    assert played.result.status == "succeeded"
    assert seen == {"a/x": "none", "then": "none", "a~2/x": "none", "answered": "none"}


def test_works_see_the_context_variables_of_who_runs_the_graph() -> None:
    async def look(_: NodeContext, inputs: Inputs) -> str:
        return COLOUR.get()

    async def main() -> None:
        COLOUR.set("green")
        run = Run(Graph("g", [node("a", look), node("b", look, "a")]), clock=FakeClock())
        COLOUR.set("yellow")
        result = await run.wait()
        assert (result.value("a"), result.value("b")) == ("yellow", "yellow")

    asyncio.run(main())


def test_two_runs_side_by_side_share_nothing() -> None:
    clock = FakeClock()

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        before = COLOUR.get()
        COLOUR.set(str(inputs["n"]))
        await asyncio.sleep(1)
        return before, COLOUR.get()

    async def main() -> None:
        graphs = [Graph(f"g{n}", [node("a", work, given={"n": n})]) for n in range(3)]
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(Run(g, clock=clock).wait()) for g in graphs]
        assert [run.result().value("a") for run in runs] == [("none", str(n)) for n in range(3)]

    clock.run(main())


def test_one_graph_runs_many_times() -> None:
    clock = FakeClock()
    graph = Graph("g", [node("a", give(1))])

    async def main() -> None:
        first, second = Run(graph, clock=clock), Run(graph, clock=clock)
        assert (await first.wait()).outcomes == (await second.wait()).outcomes

    clock.run(main())


def test_a_work_finds_what_its_own_run_shares() -> None:
    """One graph serves several runs: what a run has is no part of the graph."""
    clock = FakeClock()

    async def outer(context: NodeContext, inputs: Inputs) -> Any:
        inner = node("a/inner", tell)
        return Expand((inner,), (inner.id,))

    async def tell(context: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(1)
        return context.services

    graph = Graph("shared", [node("a", outer), node("b", tell)])

    async def main() -> list[Any]:
        runs = [Run(graph, clock=clock, services=number) for number in (1, 2)]
        async with asyncio.TaskGroup() as tasks:
            ended = [tasks.create_task(run.wait()) for run in runs]
        return [
            [result.outcomes[NodeId(name)].value for name in "ab"]
            for result in (task.result() for task in ended)
        ]

    assert clock.run(main()) == [[[1], 1], [[2], 2]]


def test_a_graph_with_other_nodes_in_their_places() -> None:
    graph = Graph("g", [node("a", give(1)), node("b", script(2), "a")], [NodeId("b")])
    other = graph.rebound({0: node("a", give(5))})
    assert (other.order, other.infos, other.ranks) == (graph.order, graph.infos, graph.ranks)
    assert other.keep == graph.keep
    assert graph.rebound({}) is graph
    clock = FakeClock()
    results = [clock.run(Run(each, clock=clock).wait()) for each in (graph, other)]
    assert [result.outcomes[NodeId("a")].value for result in results] == [1, 5]
