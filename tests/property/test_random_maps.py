"""Pipelines of maps over random lists against list comprehensions: values, order and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.scheduler.virtual_executor import pause
from tests.engine.virtual_run import Played, node, play
from tests.profile import examples
from weft.core.errors import ModelUnavailable
from weft.core.ids import NodeId, inside
from weft.engine import (
    ALL,
    MISSING,
    Edge,
    Inputs,
    Join,
    Node,
    NodeContext,
    Policy,
    Retry,
    Skip,
    best_effort,
)
from weft.engine.kinds import Fragment, fold, map_over, reduce_with

Stage = dict[str, Any]
SECONDS = st.integers(0, 6).map(float)


@st.composite
def stages(draw: st.DrawFn, items: int, joins: Sequence[Join]) -> Stage:
    """How one map treats item i: its seconds, and what becomes of it."""
    fates = st.sampled_from(["ok", "ok", "ok", "skip", "fail", "flaky"])
    return {
        "seconds": draw(st.lists(SECONDS, min_size=items, max_size=items)),
        "fates": draw(st.lists(fates, min_size=items, max_size=items)),
        "width": draw(st.none() | st.integers(1, 4)),
        "stream": draw(st.booleans()),
        "steps": draw(st.integers(1, 2)),
        "join": draw(st.sampled_from(joins)),
    }


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[list[int], list[Stage]]:
    """Only the first map may tolerate failures: whether items that stream on from a map that fails
    are still wanted is up to the one after it."""
    items = draw(st.lists(st.integers(0, 99), max_size=6))
    first = draw(stages(len(items), [ALL, best_effort(), best_effort((0, -1))]))
    return items, [first, *draw(st.lists(stages(len(items), [ALL]), max_size=2))]


def body(stage: Stage) -> Any:
    """One or two nodes an item. The item knows its first index, so that fates can be told."""

    async def first(context: NodeContext, inputs: Inputs) -> Any:
        index, value = inputs["item"]
        await pause(stage["seconds"][index])
        match stage["fates"][index]:
            case "skip":
                return Skip()
            case "fail":
                raise ValueError(index)
            case "flaky" if context.attempt == 1:
                raise ModelUnavailable("x")
        return index, value + 1

    async def second(context: NodeContext, inputs: Inputs) -> Any:
        index, value = inputs["x"]
        return index, value * 3

    retry = Policy(retry=Retry(attempts=2, delay_s=1, jitter=0))

    def make(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        item = bindings["item"]
        streamed = isinstance(item, Edge)
        edges = (Edge(item.source, "item"),) if streamed else ()
        given = {} if streamed else {"item": item}
        if stage["steps"] == 1:
            return Fragment((Node(scope, first, edges, given, policy=retry),), scope)
        a, b = inside(scope, "a"), inside(scope, "b")
        nodes = (
            Node(a, first, edges, given, policy=retry),
            Node(b, second, (Edge(a, "x"),)),
        )
        return Fragment(nodes, b)

    return make


def nodes_of(items: Sequence[int], pipeline: Sequence[Stage], streaming: bool) -> list[Node]:
    found = []
    for number, stage in enumerate(pipeline):
        work = map_over("xs", body(stage), join=stage["join"], width=stage["width"])
        if number == 0:
            found.append(node("m0", work, given={"xs": list(enumerate(items))}))
        else:
            edge = Edge(NodeId(f"m{number - 1}"), "xs", stream=streaming and stage["stream"])
            found.append(node(f"m{number}", work, edge))
    last = NodeId(f"m{len(pipeline) - 1}")
    add = fold(lambda seen, item: [*seen, item], [], "xs")
    found.append(node("folded", add, Edge(last, "xs", stream=streaming)))
    found.append(node("reduced", reduce_with(list, "xs"), Edge(last, "xs", stream=streaming)))
    return found


def expected(items: Sequence[int], pipeline: Sequence[Stage]) -> list[Any] | None:
    """The last map's value by list comprehension; None when it has none."""
    values: list[Any] = list(enumerate(items))
    for stage in pipeline:
        results: list[Any] = []
        for index, number in values:
            fate = stage["fates"][index]
            if fate in ("ok", "flaky"):
                results.append((index, (number + 1) * (3 if stage["steps"] == 2 else 1)))
            elif fate == "fail" and stage["join"] is ALL:
                return None
            elif fate == "fail" and stage["join"].default is not MISSING:
                results.append(stage["join"].default)
        values = results
    return values


@examples(150)
@given(pipelines(), st.none() | st.integers(1, 3))
def test_a_pipeline_is_a_list_comprehension_however_it_is_run(
    pipeline: tuple[list[int], list[Stage]], slots: int | None
) -> None:
    items, shape = pipeline
    wanted = expected(items, shape)
    for streaming in (False, True):
        played = play(*nodes_of(items, shape, streaming), max_concurrency=slots)
        last = played[f"m{len(shape) - 1}"]
        if wanted is None:
            assert not last.ok
        else:
            assert last.value == wanted
            assert played.value("folded") == played.value("reduced") == wanted


@examples(100)
@given(
    st.lists(st.lists(SECONDS, min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(0, 4),
)
def test_streaming_items_never_wait_for_each_other(seconds: list[list[float]], items: int) -> None:
    """With unlimited workers item i of map n ends after the sum of its own times."""
    pipeline = [
        {
            "seconds": one,
            "fates": ["ok"] * 4,
            "width": None,
            "stream": True,
            "steps": 1,
            "join": ALL,
        }
        for one in seconds
    ]
    played = play(*nodes_of(list(range(items)), pipeline, streaming=True))
    for index in range(items):
        total = 0.0
        for number, one in enumerate(seconds):
            total += one[index]
            assert played.ended_s(f"m{number}[{index}]") == total
    totals = [sum(one[index] for one in seconds) for index in range(items)]
    assert played.result.wall_s == max(totals, default=0)


@examples(100)
@given(st.lists(SECONDS, max_size=12), st.integers(1, 5))
def test_a_width_is_a_queue_of_so_many_counters(seconds: list[float], width: int) -> None:
    """Items start in order, each at the first counter that is free."""
    stage = {"seconds": seconds, "fates": ["ok"] * len(seconds), "width": width, "steps": 1}
    stage |= {"stream": False, "join": ALL}
    played = play(*nodes_of([0] * len(seconds), [stage], streaming=False))
    free_s = [0.0] * width
    for index, one in enumerate(seconds):
        start_s = min(free_s)
        assert played.started_s(f"m0[{index}]") == start_s
        free_s[free_s.index(start_s)] = start_s + one


@pytest.mark.parametrize("join", [ALL, best_effort()])
def test_a_map_of_maps(join: Join) -> None:
    async def double(_: NodeContext, inputs: Inputs) -> int:
        await pause(cast("int", inputs["item"]))
        return cast("int", inputs["item"]) * 2

    def leaf(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        return Fragment((Node(scope, double, given=bindings),), scope)

    def inner(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
        work = map_over("xs", leaf, join=join)
        return Fragment((Node(scope, work, given={"xs": bindings["item"]}),), scope)

    lists = [[3, 1], [], [2], list(range(5))]
    played: Played = play(node("m", map_over("xs", inner, width=2), given={"xs": lists}))
    assert played.value("m") == [[2 * x for x in xs] for xs in lists]
