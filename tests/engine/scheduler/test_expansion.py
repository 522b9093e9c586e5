"""Large expansions: in slices, up to a limit of nodes, and ended in their midst."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.engine.virtual_run import WatchedClock, after, echo, fail, give, node, play
from weft.core.errors import NodeLimit
from weft.core.events import Event, GraphGrew, NodeFinished, NodeStarted, RunStarted, whole
from weft.core.ids import NodeId
from weft.engine import ANY, Expand, Graph, Inputs, Node, NodeContext, NodeFn, Run, RunOptions
from weft.engine.graph.slices import SLICE, ExpansionPacer
from weft.engine.kinds import Body, Fragment, branch, loop, map_over, subgraph
from weft.testing import FakeClock

MANY = 5 * SLICE + 7


def cells(made: list[NodeId] | None = None) -> Body:
    """One node an item, which gives what it gets."""

    def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        if made is not None:
            made.append(scope)
        return Fragment((Node(scope, echo, (), dict(bindings)),), scope)

    return body


def nested(rows: int, columns: int, made: list[NodeId] | None = None) -> Node:
    inner = map_over("over", cells(made))

    def row(scope: NodeId, _: Mapping[str, Any]) -> Fragment:
        return Fragment((Node(scope, inner, (), {"over": range(columns)}),), scope)

    return Node(NodeId("outer"), map_over("over", row), (), {"over": list(range(rows))})


class Passes:
    """Counts what happens in each pass of the event loop, which asks its selector once a pass."""

    def __init__(self) -> None:
        self.counts: list[int] = [0]

    def begin(self) -> None:
        selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
        select = selector.select

        def counted(timeout: float | None = None) -> Any:
            self.counts.append(0)
            return select(timeout)

        selector.select = counted

    def add(self, count: int) -> None:
        self.counts[-1] += count


def most_in_a_pass(
    graph: Graph, count: Callable[[Event], int], options: RunOptions | None = None
) -> int:
    """The most that `count` makes of the events of one pass of the event loop."""
    passes = Passes()

    def listen(event: Event) -> None:
        if type(event) is not RunStarted:
            passes.add(count(event))

    async def main() -> None:
        passes.begin()
        await Run(graph, options or RunOptions(), clock=clock, listeners=[listen]).wait()

    clock = FakeClock()
    clock.run(main())
    return max(passes.counts)


def grown(event: Event) -> int:
    return len(event.nodes) if isinstance(event, GraphGrew) else 0


def started(event: Event) -> int:
    return isinstance(event, NodeStarted)


def ended(event: Event) -> int:
    return isinstance(event, NodeFinished)


async def samples(context: NodeContext, inputs: Inputs) -> Expand:
    """Makes all at once: what a work returns is taken in by slices all the same."""
    nodes = tuple(node(f"wide/{i}", give(i)) for i in range(MANY))
    return Expand(nodes, tuple(each.id for each in nodes))


@pytest.mark.parametrize("count", [grown, started, ended])
@pytest.mark.parametrize("shape", ["flat", "nested", "at once"])
def test_one_pass_of_the_event_loop_has_a_bounded_share_of_an_expansion(
    shape: str, count: Callable[[Event], int]
) -> None:
    top = {
        "flat": Node(NodeId("wide"), map_over("over", cells()), (), {"over": list(range(MANY))}),
        "nested": nested(60, 60),
        "at once": node("wide", samples),
    }[shape]
    # A step starts a slice, and takes in a slice and the rest of one that it had begun.
    assert most_in_a_pass(Graph("test", [top]), count) <= 2 * SLICE + 60


@pytest.mark.parametrize(
    "work",
    [
        subgraph(lambda scope, _: Fragment((node(f"{scope}/x", give(1)),), NodeId(f"{scope}/x"))),
        branch(lambda _: "a", {"a": lambda scope, _: cells()(scope, {})}),
        loop(cells(), until=lambda value, number: number == 3, max_iterations=5),
    ],
    ids=["subgraph", "branch", "loop"],
)
def test_bodies_of_all_kinds_are_made_a_slice_in_a_pass(work: NodeFn) -> None:
    nodes = [node(f"n{i}", work) for i in range(3 * SLICE)]
    assert most_in_a_pass(Graph("test", nodes), grown) <= SLICE + 1


def test_a_large_expansion_comes_to_what_a_small_one_does_and_is_told_in_parts() -> None:
    played = play(Node(NodeId("m"), map_over("over", cells()), (), {"over": list(range(MANY))}))
    assert played.value("m") == [{"item": i, "index": i} for i in range(MANY)]
    parts = played.all(GraphGrew)
    assert [len(part.nodes) for part in parts] == [SLICE] * 5 + [7]
    assert [part.more for part in parts] == [True] * 5 + [False]
    one = whole(parts)
    assert [info.id for info in one.nodes] == [f"m[{i}]" for i in range(MANY)]
    assert one.results == tuple(info.id for info in one.nodes)
    assert not one.more
    assert one.items


def test_nothing_of_an_expansion_starts_before_all_of_it_is_there() -> None:
    played = play(Node(NodeId("m"), map_over("over", cells()), (), {"over": list(range(MANY))}))
    kinds = [type(event) for event in played.events if isinstance(event, GraphGrew | NodeStarted)]
    assert kinds == [NodeStarted] + [GraphGrew] * 6 + [NodeStarted] * MANY


def test_a_join_of_any_decides_for_the_first_of_very_many() -> None:
    items = list(range(MANY))
    top = Node(NodeId("m"), map_over("over", cells(), join=ANY), (), {"over": items})
    assert play(top).value("m") == [{"item": 0, "index": 0}]


@pytest.mark.parametrize("end", ["deadline", "cancel", "the node's timeout", "caller"])
def test_what_ends_the_run_takes_effect_in_the_midst_of_an_expansion(end: str) -> None:
    clock = FakeClock()
    made: list[NodeId] = []
    events: list[Event] = []
    rows, columns = 20, 300

    def cell(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        clock.advance(0.001)  # the time that it takes to make one
        return cells(made)(scope, bindings)

    inner = map_over("over", cell)

    def row(scope: NodeId, _: Mapping[str, Any]) -> Fragment:
        return Fragment((Node(scope, inner, (), {"over": range(columns)}),), scope)

    timeout_s = 1.0 if end == "the node's timeout" else None
    top = node("outer", map_over("over", row), given={"over": range(rows)}, timeout_s=timeout_s)
    options = RunOptions(deadline_s=1.0 if end == "deadline" else None)
    run = Run(Graph("test", [top]), options, clock=clock, listeners=[events.append])

    async def main() -> Any:
        waiting = asyncio.create_task(run.wait())
        loop = asyncio.get_running_loop()
        if end == "cancel":
            loop.call_later(1.0, run.cancel)
        if end == "caller":
            loop.call_later(1.0, waiting.cancel)
        await asyncio.wait([waiting])
        return None if waiting.cancelled() else waiting.result()

    result = clock.run(main())
    assert 1000 <= len(made) <= 1000 + 3 * SLICE  # of 6,000
    finished = [event.node for event in events if isinstance(event, NodeFinished)]
    born = {info.id for event in events if isinstance(event, GraphGrew) for info in event.nodes}
    assert sorted(finished) == sorted({*born, "outer"})  # each once
    if end == "caller":
        assert result is None
    else:
        expected = {"deadline": "partial", "cancel": "cancelled"}.get(end, "failed")
        assert result.status == expected


def test_the_end_of_very_many_nodes_is_told_by_slices_too() -> None:
    clock = FakeClock()
    passes = Passes()

    def listen(event: Event) -> None:
        passes.add(ended(event))

    async def main() -> None:
        passes.begin()
        nodes = [node(f"n{i}", after(100)) for i in range(MANY)]
        run = Run(Graph("test", nodes), RunOptions(deadline_s=1), clock=clock, listeners=[listen])
        result = await run.wait()
        assert result.status == "partial"
        assert {o.status for o in result.outcomes.values()} == {"cancelled"}

    clock.run(main())
    assert sum(passes.counts) == MANY
    assert max(passes.counts) == SLICE


async def _appends(context: NodeContext, inputs: Inputs) -> int:
    for number in range(100):
        context.append([node(f"{context.node}/{number}", give(1))])
    return 1


@pytest.mark.parametrize(
    ("top", "fits"),
    [
        (nested(10, 10), 111),
        (Node(NodeId("outer"), map_over("over", cells()), (), {"over": range(99)}), 100),
        (node("outer", _appends), 101),
        (
            node(
                "outer",
                loop(cells(), until=lambda _, number: number == 40, max_iterations=40),
            ),
            41,
        ),
    ],
    ids=["nested", "map", "appended", "loop"],
)
def test_a_run_has_no_more_nodes_than_its_limit(top: Node, fits: int) -> None:
    assert play(top, max_nodes=fits).result.status == "succeeded"
    played = play(top, max_nodes=fits - 1)
    assert played.result.status == "failed"
    assert len(played.result.outcomes) <= fits - 1
    failures = [o.failure for o in played.result.outcomes.values() if o.failure]
    limit = next(failure for failure in failures if failure.error == "NodeLimit")
    assert f"no more than {fits - 1}" in limit.message
    assert "max_nodes" in (limit.hint or "")
    assert not limit.retryable


def test_a_map_beyond_the_limit_fails_before_it_makes_a_node() -> None:
    made: list[NodeId] = []
    top = Node(NodeId("m"), map_over("over", cells(made)), (), {"over": range(10_000)})
    played = play(top, max_nodes=1000)
    assert played.error("m") == "NodeLimit"
    assert played.result.reasons[0].startswith("m failed: NodeLimit: it expands into 10,000 nodes")
    assert made == []


def test_a_graph_beyond_the_limit_is_no_run() -> None:
    with pytest.raises(NodeLimit, match="3 nodes"):
        play(*(node(f"n{i}", give(1)) for i in range(3)), max_nodes=2)


def test_what_stands_in_for_a_node_counts_too_and_is_refused_beyond_the_limit() -> None:
    stand_in = node("b", give("B"))
    played = play(node("a", fail(ValueError()), fallback=stand_in), max_nodes=1)
    assert played.error("a") == "NodeLimit"
    assert play(node("a", fail(ValueError()), fallback=stand_in), max_nodes=2).value("a") == "B"


def test_who_expands_waits_in_order_and_leaves_the_queue_when_cancelled() -> None:
    async def main() -> Sequence[str]:
        pace, order = ExpansionPacer(), []

        async def take(name: str) -> None:
            await pace.take(SLICE)
            order.append(name)

        tasks = {name: asyncio.create_task(take(name)) for name in "abcde"}
        await asyncio.sleep(0)
        assert order == ["a"]
        tasks["b"].cancel()
        tasks["d"].cancel()
        await asyncio.wait(tasks.values())
        return order

    assert FakeClock().run(main()) == ["a", "c", "e"]


def test_one_whose_turn_has_come_and_who_is_cancelled_hands_it_on() -> None:
    async def main() -> None:
        pace = ExpansionPacer()
        await pace.take(SLICE)
        first, second = (asyncio.create_task(pace.take(1)) for _ in range(2))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(first.cancel)  # runs after the renewal of this pass
        await asyncio.wait_for(second, 1)
        assert first.cancelled() or first.done()

    WatchedClock().run(main())
