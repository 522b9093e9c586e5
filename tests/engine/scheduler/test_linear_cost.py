"""How the engine's own work grows with the graph: counted in executed lines, never in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.engine.virtual_run import echo, fail, give, node
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.engine import (
    ANY,
    Edge,
    Expand,
    Graph,
    Inputs,
    Join,
    Node,
    NodeContext,
    Run,
    RunOptions,
    best_effort,
    first_valid,
)
from weft.engine.graph import join as join_module
from weft.engine.graph.join import JoinCount
from weft.engine.kinds import Fragment, fold, loop, map_over
from weft.testing import FakeClock

ENGINE = str(Path(join_module.__file__).parent)
SMALL, LARGE = 200, 800
Shape = Callable[[int], list[Node]]


def lines_of(nodes: list[Node], **options: Any) -> int:
    """How many lines of `weft.engine` a run of `nodes` executes, building the graph included."""
    clock = FakeClock()
    count = 0

    def in_engine(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return in_engine

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        return in_engine if frame.f_code.co_filename.startswith(ENGINE) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        clock.run(Run(Graph("test", nodes), RunOptions(**options), clock=clock).wait())
    finally:
        sys.settrace(before)
    return count


def fan(join: Join, broken: bool = False) -> Shape:
    def shape(size: int) -> list[Node]:
        work = fail(ValueError()) if broken else give(1)
        names = [f"n{i}" for i in range(size)]
        nodes = [node("source", give(0))]
        nodes += [node(name, work, Edge(NodeId("source"), "x")) for name in names]
        return [*nodes, node("sink", give(2), *names, join=join)]

    return shape


def chain(size: int) -> list[Node]:
    return [node(f"n{i}", give(1), *([f"n{i - 1}"] if i else [])) for i in range(size)]


def broken_chain(size: int) -> list[Node]:
    return [node("n0", fail(ValueError())), *chain(size)[1:]]


def one(scope: NodeId, bindings: Any) -> Fragment:
    edges = tuple(Edge(v.source, k) for k, v in bindings.items() if isinstance(v, Edge))
    given = {k: v for k, v in bindings.items() if not isinstance(v, Edge)}
    return Fragment((Node(scope, give(1), edges, given),), scope)


def two(scope: NodeId, bindings: Any) -> Fragment:
    first = one(inside(scope, "first"), bindings).nodes[0]
    last = Node(inside(scope, "last"), give(1), (Edge(first.id, "x"),))
    return Fragment((first, last), last.id)


def maps(body: Any, **options: Any) -> Shape:
    def shape(size: int) -> list[Node]:
        items = {"xs": list(range(size))}
        return [
            node("one", map_over("xs", body, **options), given=items),
            node("two", map_over("xs", body, **options), Edge(NodeId("one"), "xs", stream=True)),
            node("sum", fold(lambda a, b: a + b, 0, "xs"), Edge(NodeId("two"), "xs", stream=True)),
        ]

    return shape


def iterations(size: int) -> list[Node]:
    return [node("l", loop(one, until=lambda v, n: False, max_iterations=size))]


def appended(size: int) -> list[Node]:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        for number in range(size):
            before = () if number % 10 == 0 else (Edge(NodeId(f"a/{number - 1}"), "x"),)
            context.append([Node(NodeId(f"a/{number}"), give(1), before)])

    return [node("a", work)]


def awaited(size: int) -> list[Node]:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        context.append([Node(NodeId(f"a/{i}"), give(1)) for i in range(size)])
        for i in range(size):
            await context.outcome(NodeId(f"a/{i}"))

    return [node("a", work)]


def decided_early(size: int) -> list[Node]:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = tuple(Node(NodeId(f"a/{i}"), give(1)) for i in range(size))
        return Expand(children, tuple(child.id for child in children), join=ANY)

    return [node("a", work)]


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (fan(Join()), {}),
        (fan(Join()), {"max_concurrency": 4}),
        (fan(Join(), broken=True), {}),
        (fan(Join(cancel_rest=True), broken=True), {}),
        (fan(first_valid()), {}),
        (fan(first_valid(), broken=True), {}),
        (fan(best_effort(0), broken=True), {}),
        (chain, {}),
        (broken_chain, {}),
        (maps(one), {}),
        (maps(two), {}),
        (maps(one, width=2), {}),
        (maps(one), {"max_concurrency": 2}),
        (iterations, {}),
        (appended, {}),
        (awaited, {}),
        (awaited, {"max_concurrency": 2}),
        (decided_early, {}),
    ],
)
def test_work_grows_with_the_graph_and_not_faster(shape: Shape, options: dict[str, Any]) -> None:
    small, large = lines_of(shape(SMALL), **options), lines_of(shape(LARGE), **options)
    assert large <= small * (LARGE / SMALL) * 1.1
    assert small >= SMALL, "it was counted"


def test_a_fan_in_of_ten_thousand_counts_every_branch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = 0
    arrive = JoinCount.arrive

    def counting(self: JoinCount, source: NodeId, outcome: Outcome) -> Any:
        nonlocal arrivals
        arrivals += 1
        return arrive(self, source, outcome)

    monkeypatch.setattr(JoinCount, "arrive", counting)
    clock = FakeClock()
    graph = Graph("fan", fan(best_effort())(10_000))
    result = clock.run(Run(graph, clock=clock).wait())
    assert result.value("sink") == 2
    assert arrivals == 10_000


def test_a_dense_layer_is_counted_by_its_edges() -> None:
    """Fifty consumers of two hundred producers: 10,000 edges, each looked at a few times."""

    def dense(consumers: int) -> list[Node]:
        names = [f"n{i}" for i in range(200)]
        nodes = [node(name, give(1)) for name in names]
        return nodes + [node(f"c{i}", echo, *names) for i in range(consumers)]

    assert lines_of(dense(50)) <= lines_of(dense(10)) * 5
