"""What the trace makes of events: counts, times, the critical path, and what to speed up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.durability.simulated_run import Job, simulate
from weft.core.errors import Failure, ModelUnavailable
from weft.core.events import (
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeInfo,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.values import Usage
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, NodeFn, Policy, Retry, Run
from weft.engine.analysis.critical_path import (
    SpeedAdvice,
    critical_path,
    family,
    least_wall_s,
    shares,
    speed_advice,
)
from weft.engine.analysis.trace import Trace
from weft.engine.kinds import Body, Fragment, map_over
from weft.testing import FakeClock


def traced(events: list[Event]) -> Trace:
    trace = Trace()
    for event in events:
        trace(event)
    return trace


def path_of(trace: Trace, now_s: float | None = None) -> list[tuple[str, str, float]]:
    return [(s.node, s.doing, s.seconds) for s in critical_path(trace, now_s)]


def info(name: str, *sources: str, parent: str | None = None) -> NodeInfo:
    owner = None if parent is None else NodeId(parent)
    return NodeInfo(NodeId(name), "call", tuple(map(NodeId, sources)), None, owner)


def begun(*nodes: NodeInfo) -> RunStarted:
    return RunStarted(RunId("r"), "flow", "2026-01-01T00:00:00Z", nodes, {})


def ok(name: str, at_s: float) -> NodeFinished:
    return NodeFinished(NodeId(name), Outcome("succeeded"), at_s)


def lost(name: str, at_s: float) -> NodeFinished:
    failure = Failure("Cancelled", "decided without it")
    return NodeFinished(NodeId(name), Outcome("cancelled", failure=failure), at_s)


def start(name: str, at_s: float) -> NodeStarted:
    return NodeStarted(NodeId(name), 1, at_s)


DIAMOND = [
    Job("load", (2.0,)),
    Job("short", (1.0,), ("load",)),
    Job("long", (4.0,), ("load",)),
    Job("join", (1.0,), ("short", "long")),
]


def test_a_diamond_is_decided_by_its_longer_side() -> None:
    trace = traced(simulate(DIAMOND))
    assert path_of(trace) == [("load", "work", 2.0), ("long", "work", 4.0), ("join", "work", 1.0)]
    assert (trace.wall_s, trace.all_busy_s(), trace.max_running) == (7.0, 8.0, 2)


def test_the_largest_share_of_the_path_is_the_first_to_speed_up() -> None:
    trace = traced(simulate(DIAMOND))
    first = shares(trace, critical_path(trace))[0]
    assert (first.doing, first.target, first.seconds) == ("work", "long", 4.0)
    assert first.fraction == pytest.approx(4 / 7)
    assert least_wall_s(trace, "long") == 4.0, "short takes its place beside it"


def test_a_speed_up_is_told_where_nodes_ran_beside_one_another() -> None:
    assert traced(simulate(DIAMOND)).speed_up() == pytest.approx(8 / 7)
    for jobs, slots in (
        ([Job("alone", (3.0,))], None),
        (DIAMOND, 1),
        ([Job("retried", (1.0, 1.0), delay_s=80.0), Job("short", (1.0,))], None),
        ([], None),
    ):
        assert traced(simulate(jobs, slots)).speed_up() is None


def test_times_of_several_parts_make_no_speed_up() -> None:
    trace = traced(simulate(DIAMOND))
    trace(RunResumed(RunId("run"), 2, "", 7.0))
    assert trace.speed_up() is None


def advised(jobs: list[Job], slots: int | None = None) -> SpeedAdvice | None:
    trace = traced(simulate(jobs, slots))
    return speed_advice(trace, shares(trace, critical_path(trace)))


def test_advice_names_what_saves_time_and_how_much() -> None:
    assert advised(DIAMOND) == SpeedAdvice("long", 3.0, 3 / 7, 4.0)
    found = advised(DIAMOND, 1)
    assert found is not None
    assert (found.target, found.saves_s) == ("long", 4.0)


def test_what_others_take_the_place_of_is_no_advice() -> None:
    twins = [Job("one", (32.4,)), Job("other", (32.41,)), Job("last", (1.0,), ("one", "other"))]
    assert advised(twins) is None, "neither saves a twentieth alone"
    last = Job("last", (4.0,), ("one", "other"))
    found = advised([*twins[:2], last])
    assert found is not None
    assert found.target == "last"


def test_one_node_that_is_the_whole_run_is_no_advice() -> None:
    assert advised([Job("alone", (5.0,))]) is None
    assert advised([Job("alone", (5.0, 5.0), delay_s=3.0)]) is None
    assert advised([Job("long", (99.0,)), Job("short", (0.5,), ("long",))]) is None
    assert advised([]) is None


def test_one_slot_shows_as_waiting_on_the_path() -> None:
    trace = traced(simulate(DIAMOND, slots=1))
    assert path_of(trace) == [
        ("load", "work", 2.0),
        ("long", "slot", 1.0),
        ("long", "work", 4.0),
        ("join", "work", 1.0),
    ]
    assert trace.max_running == 1
    by_target = {(s.doing, s.target): s for s in shares(trace, critical_path(trace))}
    assert by_target["slot", ""].seconds == 1.0
    assert least_wall_s(trace, "long") == 4.0, "the wait for the slot may vanish too"


def test_items_of_a_map_and_its_fold_are_own_work() -> None:
    items = tuple(Job(f"notes[{i}]", (1.0 + i,)) for i in range(3))
    trace = traced(
        simulate([Job("notes", (0.5,), children=items, then_s=0.25), Job("other", (9,))])
    )
    assert trace.busy_s(trace.nodes[NodeId("notes")]) == 0.75
    assert trace.all_busy_s() == 0.75 + 6.0 + 9.0
    trace = traced(simulate([Job("notes", (0.5,), children=items, then_s=0.25)]))
    assert path_of(trace) == [
        ("notes", "work", 0.5),
        ("notes[2]", "work", 3.0),
        ("notes", "work", 0.25),
    ]


def test_retries_count_as_work_and_delay() -> None:
    trace = traced(simulate([Job("call", (1.0, 2.0), delay_s=0.5)]))
    node = trace.nodes[NodeId("call")]
    assert node.attempts == 2
    assert trace.busy_s(node) == 3.0
    assert path_of(trace) == [
        ("call", "work", 1.0),
        ("call", "delay", 0.5),
        ("call", "work", 2.0),
    ]


def test_a_retry_that_waits_for_a_slot_says_so() -> None:
    jobs = [Job("call", (1.0, 2.0), delay_s=0.5), Job("other", (3.0,))]
    trace = traced(simulate(jobs, slots=1))
    assert path_of(trace)[-3:] == [
        ("call", "delay", 0.5),
        ("call", "slot", 2.5),
        ("call", "work", 2.0),
    ]


def test_a_streaming_consumer_is_busy_only_after_its_last_item() -> None:
    grown = GraphGrew(
        NodeId("map"), (info("map[0]", parent="map"), info("map[1]", parent="map")), 1
    )
    trace = traced(
        [
            begun(info("map"), info("fold", "map")),
            start("map", 0),
            NodeWaiting(NodeId("map"), 1),
            grown,
            start("map[0]", 1),
            start("map[1]", 1),
            start("fold", 1),
            ok("map[0]", 3),
            ok("map[1]", 6),
            ok("map", 6),
            ok("fold", 8),
        ]
    )
    assert trace.busy_s(trace.nodes[NodeId("fold")]) == 2
    assert path_of(trace) == [("map", "work", 1), ("map[1]", "work", 5), ("fold", "work", 2)]


def test_the_winner_of_a_join_is_on_the_path_not_the_losers_cancelled_with_it() -> None:
    trace = traced(
        [
            begun(info("a"), info("b"), info("pick", "a", "b")),
            start("a", 0),
            start("b", 0),
            ok("a", 3),
            lost("b", 3),
            start("pick", 3),
            ok("pick", 4),
        ]
    )
    assert path_of(trace) == [("a", "work", 3), ("pick", "work", 1)]


def test_a_cancelled_child_that_held_its_parent_up_is_on_the_path() -> None:
    trace = traced(
        [
            begun(info("map")),
            start("map", 0),
            NodeWaiting(NodeId("map"), 0),
            GraphGrew(
                NodeId("map"), (info("map[0]", parent="map"), info("map[1]", parent="map")), 0
            ),
            start("map[0]", 0),
            start("map[1]", 0),
            ok("map[0]", 1),
            lost("map[1]", 9),
            NodeFinished(NodeId("map"), Outcome("failed"), 9),
        ]
    )
    assert path_of(trace) == [("map[1]", "work", 9)]


def test_waiting_for_a_person_is_on_the_path() -> None:
    trace = traced(
        [
            begun(info("approve")),
            start("approve", 0),
            HumanAsked(NodeId("approve"), "go?", {"type": "boolean"}, 1),
            HumanAnswered(NodeId("approve"), 31),
            ok("approve", 31),
        ]
    )
    assert path_of(trace) == [("approve", "work", 1), ("approve", "person", 30)]
    assert trace.busy_s(trace.nodes[NodeId("approve")]) == 1


def test_a_run_under_way_has_a_critical_path_so_far() -> None:
    events = simulate(DIAMOND)
    running = events[: events.index(ok_of(events, "short"))]
    trace = traced(running)
    assert path_of(trace, now_s=2.5) == [("load", "work", 2.0), ("short", "work", 0.5)]
    assert trace.status is None


def ok_of(events: list[Event], name: str) -> NodeFinished:
    return next(e for e in events if isinstance(e, NodeFinished) and e.node == name)


def test_usage_and_streamed_tokens_add_up() -> None:
    trace = traced(
        [
            begun(info("a"), info("b")),
            start("a", 0),
            start("b", 0),
            NodeStreamed(NodeId("a"), "he", 1, 1),
            NodeStreamed(NodeId("a"), "llo", 2, 2),
            NodeSpent(NodeId("a"), Usage(10, 3, requests=1), 3),
            NodeSpent(NodeId("b"), Usage(1, 1, requests=1), 3),
        ]
    )
    assert trace.nodes[NodeId("a")].streamed_tokens == 3
    assert trace.nodes[NodeId("a")].usage == Usage(10, 3, requests=1)
    assert trace.usage == Usage(11, 4, requests=2)


def test_events_of_nodes_nobody_announced_are_ignored() -> None:
    trace = traced([begun(), start("ghost", 1), ok("ghost", 2)])
    assert trace.nodes == {}
    assert path_of(trace) == []


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("notes[3]/draft", "notes[*]/draft"),
        ("refine#2/draft", "refine#*/draft"),
        ("plan~2/step", "plan/step"),
        ("a[1][2]", "a[*][*]"),
    ],
)
def test_a_family_is_the_node_as_written_in_the_program(node: str, expected: str) -> None:
    assert family(NodeId(node)) == expected


@st.composite
def programs(draw: st.DrawFn, prefix: str = "", depth: int = 2) -> list[Job]:
    jobs: list[Job] = []
    for index in range(draw(st.integers(1, 5))):
        name = f"{prefix}n{index}"
        children: list[Job] = []
        if depth and draw(st.booleans()):
            children = draw(programs(f"{name}/", depth - 1))
        jobs.append(
            Job(
                name,
                tuple(map(float, draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))),
                tuple(draw(st.sets(st.sampled_from([j.id for j in jobs]))) if jobs else ()),
                tuple(children),
                float(draw(st.integers(0, 2))) if children else 0.0,
                float(draw(st.integers(0, 2))),
            )
        )
    return jobs


def ends(jobs: list[Job] | tuple[Job, ...], born_s: float) -> dict[str, float]:
    """The oracle: when each job ends if nothing ever waits for a slot. Jobs are in order."""
    found: dict[str, float] = {}
    for job in jobs:
        end_s = max([born_s, *(found[source] for source in job.sources)])
        end_s += sum(job.works_s) + job.delay_s * (len(job.works_s) - 1)
        if job.children:
            end_s = max(ends(job.children, end_s).values()) + job.then_s
        found[job.id] = end_s
    return found


@given(programs())
def test_with_unlimited_workers_the_critical_path_is_the_wall_time(jobs: list[Job]) -> None:
    trace = traced(simulate(jobs))
    path = critical_path(trace)
    assert trace.wall_s == max(ends(jobs, 0.0).values())
    assert sum(segment.seconds for segment in path) == trace.wall_s
    assert {segment.doing for segment in path} <= {"work", "delay"}


@given(programs(), st.integers(1, 3))
def test_the_path_covers_the_run_without_gaps(jobs: list[Job], slots: int) -> None:
    trace = traced(simulate(jobs, slots))
    path = critical_path(trace)
    times = [0.0, *(t for s in path for t in (s.start_s, s.end_s)), trace.wall_s]
    assert times[::2] == times[1::2], "each segment begins where the one before ends"
    assert all(a <= b for a, b in pairwise(times))
    assert trace.max_running <= slots
    found = shares(trace, path)
    assert sum(share.seconds for share in found) == sum(segment.seconds for segment in path)
    assert all(0 <= least_wall_s(trace, share.target) <= trace.wall_s for share in found)


@given(programs(), st.data())
def test_the_bound_is_what_the_run_would_take_if_a_node_were_free(
    jobs: list[Job], data: st.DataObject
) -> None:
    trace = traced(simulate(jobs))
    assert least_wall_s(trace) == trace.wall_s
    free = data.draw(st.sampled_from(sorted(trace.nodes)))
    cheaper = ends([freed(job, free) for job in jobs], 0.0)
    assert least_wall_s(trace, free) == max(cheaper.values())


def freed(job: Job, free: str) -> Job:
    children = tuple(freed(child, free) for child in job.children)
    if job.id != free:
        return replace(job, children=children)
    return replace(job, children=children, works_s=(0.0,) * len(job.works_s), then_s=0.0)


@given(programs(), st.data())
def test_every_prefix_of_a_run_has_a_path(jobs: list[Job], data: st.DataObject) -> None:
    events = simulate(jobs, slots=2)
    cut = data.draw(st.integers(0, len(events)))
    path = critical_path(traced(events[:cut]))
    assert all(a.end_s == b.start_s for a, b in pairwise(path))
    assert 0 <= least_wall_s(traced(events[:cut]), "n0") <= events[-1].at_s


def test_ten_thousand_items_are_walked_in_linear_work() -> None:
    items = tuple(Job(f"m[{i}]", (1.0,)) for i in range(10_000))
    trace = traced(simulate([Job("m", children=items), Job("fold", sources=("m",))]))
    assert len(critical_path(trace)) == 3
    assert trace.all_busy_s() == 10_002
    assert trace.max_running == 10_000


def works(seconds: float, value: object = None, **raises: Exception) -> NodeFn:
    async def work(context: NodeContext, inputs: Inputs) -> object:
        await asyncio.sleep(seconds)
        if context.attempt == 1 and "first" in raises:
            raise raises["first"]
        return value

    return work


def test_a_real_run_is_covered_by_work_and_delays_alone() -> None:
    """The engine's own events: a map that streams into a map, a retry, a loop, a fallback."""

    def step(seconds: float) -> Body:
        def body(scope: NodeId, bindings: Mapping[str, Any]) -> Fragment:
            sources = [value.source for value in bindings.values() if isinstance(value, Edge)]
            return Fragment((node(scope, works(seconds, "x"), *sources),), scope)

        return body

    def node(name: str, work: NodeFn, *sources: str, stream: bool = False, **policy: Any) -> Node:
        edges = tuple(Edge(NodeId(source), source, stream) for source in sources)
        return Node(NodeId(name), work, edges, policy=Policy(**policy))

    graph = Graph(
        "real",
        [
            node("list", works(1, [1, 2, 3])),
            node("read", map_over("list", step(2)), "list"),
            node("note", map_over("read", step(4)), "read", stream=True),
            node(
                "flaky",
                works(1, first=ModelUnavailable("gone")),
                "note",
                retry=Retry(2, delay_s=3, jitter=0),
            ),
            node(
                "route",
                works(2, first=ModelUnavailable("gone")),
                "flaky",
                fallback=Node(NodeId("small"), works(5)),
            ),
            node("side", works(9)),
        ],
    )
    trace = Trace()
    clock = FakeClock()
    result = clock.run(Run(graph, clock=clock, listeners=[trace]).wait())
    assert result.status == "succeeded"
    path = critical_path(trace)
    assert [(s.node, s.doing, s.seconds) for s in path] == [
        ("list", "work", 1),
        ("read[2]", "work", 2),
        ("note[2]", "work", 4),
        ("flaky", "work", 1),
        ("flaky", "delay", 3),
        ("flaky", "work", 1),
        ("route", "work", 2),
        ("route/small", "work", 5),
    ]
    assert trace.wall_s == sum(segment.seconds for segment in path) == 19
    assert least_wall_s(trace) == 19
    assert least_wall_s(trace, "route/small") == 14
    assert least_wall_s(trace, "note[*]") == 15
    assert trace.all_busy_s() == 1 + 3 * 2 + 3 * 4 + 2 + 2 + 5 + 9


def test_a_resumed_run_is_one_trace() -> None:
    """What the first part told is not told again; what failed in it is done again."""
    a, b = NodeId("a"), NodeId("b")
    lost = NodeFinished(b, Outcome("failed", None, Failure("X", "lost")), 2.0)
    spent = Usage(completion_tokens=5)
    first = [
        begun(info("a"), info("b", "a")),
        NodeStarted(a, 1, 0.0),
        NodeSpent(a, spent, 1.0),
        ok("a", 1.0),
        NodeStarted(b, 1, 1.0),
        lost,
    ]
    second = [
        RunResumed(RunId("r"), 2, "2026-01-01T01:00:00Z", 2.0),
        begun(info("a"), info("b", "a")),
        replace(ok("a", 2.0), recalled=True),
        NodeSpent(a, spent, 2.0, recalled=True),
        NodeStarted(b, 2, 2.0),
        ok("b", 5.0),
    ]
    both, alone = traced([*first, *second]), traced(second)
    for trace in (both, alone):
        assert trace.parts == 2
        assert trace.ended["succeeded"] == 2
        assert not trace.ended.get("failed")
        assert trace.usage == spent
    assert both.nodes[a].ended == traced(first).nodes[a].ended
    assert both.nodes[b].attempts == 2
