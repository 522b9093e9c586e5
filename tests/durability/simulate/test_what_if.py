"""What changes, changes: speeds, failures, chance, and advice that can be checked by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.virtual_run import play
from weft.core.calls import CallId, ModelAnswered, ModelCalled, ToolCalled, ToolReturned
from weft.core.errors import RunError
from weft.core.events import (
    Event,
    NodeFinished,
    NodeInfo,
    NodeStarted,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Record
from weft.core.ports.model import ModelRequest
from weft.core.values import Completion, Message, Usage
from weft.durability.simulate import Change, Fault, RecordedRun, Scale, advise, recording, simulate
from weft.engine import Edge, Node, Policy, Retry
from weft.engine.kinds import map_over
from weft.engine.kinds.body import Fragment

A, B = NodeId("a"), NodeId("b")


def called() -> list[Record]:
    """A searches for two of three seconds, then b asks a model for four of five."""
    search, answer = CallId("tool:aa#0"), CallId("model:bb#0")
    infos = (NodeInfo(A, "tool"), NodeInfo(B, "model", (A,)))
    request = ModelRequest((Message("user", "?"),))
    return [
        RunStarted(RunId("r"), "flow", "2026-11-22T10:00:00+00:00", infos, {}),
        NodeStarted(A, 1, 0.0),
        ToolCalled(A, 1, search, "search", {}, "pure", "", 0.5),
        ToolReturned(A, 1, search, 1, None, "done", 2.5),
        NodeFinished(A, Outcome("succeeded", 1), 3.0),
        NodeStarted(B, 1, 3.0),
        ModelCalled(B, 1, answer, "small", request, 3.0),
        ModelAnswered(B, 1, answer, Completion("!"), None, 7.0),
        NodeFinished(B, Outcome("succeeded", "!"), 8.0),
        RunFinished("succeeded", Usage(), (), 8.0),
    ]


def mapped(**options: Any) -> RecordedRun:
    """Eight items of one second each, after a second of planning; the fourth is slow."""
    events: list[Event] = []

    async def plan(_: object, __: object) -> list[int]:
        await asyncio.sleep(1)
        return list(range(8))

    async def work(_: object, inputs: Any) -> int:
        await asyncio.sleep(3 if inputs["item"] == 3 else 1)
        return 0

    def body(node: NodeId, bindings: Any) -> Fragment:
        policy = Policy(resource="gpu", retry=Retry(2, 0.5, jitter=0))
        return Fragment((Node(node, work, given=dict(bindings), policy=policy),), node)

    nodes = (
        Node(NodeId("plan"), plan),
        Node(NodeId("notes"), map_over("over", body), (Edge(NodeId("plan"), "over"),)),
    )
    play(*nodes, listeners=[events.append], **options)
    return recording(events)


@pytest.mark.parametrize(
    ("scale", "wall_s"),
    [
        (Scale("tool.search", 0.5), 7.0),
        (Scale("model.*", 0.5), 6.0),
        (Scale("model.small", seconds=1.0), 5.0),
        (Scale("own.b", 0.0), 7.0),
        (Scale("node.b", 2.0), 13.0),
        (Scale("tool.other", 0.0), 8.0),
    ],
)
def test_speeds(scale: Scale, wall_s: float) -> None:
    assert simulate(recording(called()), Change(scales=(scale,))).wall_s == pytest.approx(wall_s)


def test_the_last_scale_that_fits_counts() -> None:
    scales = (Scale("model.*", 0.0), Scale("model.small", 1.0))
    assert simulate(recording(called()), Change(scales=scales)).wall_s == pytest.approx(8.0)


def test_brackets_are_part_of_a_name() -> None:
    change = Change(scales=(Scale("node.notes[*]", 2.0),))
    assert simulate(mapped(), change).wall_s == pytest.approx(1 + 6)


@pytest.mark.parametrize(
    ("workers", "wall_s"), [(0, 1 + 3), (1, 1 + 10), (2, 1 + 5), (4, 1 + 3), (100, 1 + 3)]
)
def test_workers(workers: int, wall_s: float) -> None:
    predicted = simulate(mapped(limits={"gpu": 3}), Change(workers=workers, limits={"gpu": 0}))
    assert predicted.wall_s == pytest.approx(wall_s)


def test_faults_are_retried_as_the_node_says_and_repeat_with_their_seed() -> None:
    never, always = (
        Change(faults=(Fault("notes[*]", 0.0),)),
        Change(faults=(Fault("notes[*]", 1.0),)),
    )
    assert simulate(mapped(), never).statuses == {"succeeded": 1}
    broken = simulate(mapped(), always)
    assert broken.statuses == {"failed": 1}
    assert set(broken.runs[0].failed) == {*(f"notes[{n}]" for n in range(8)), "notes"}
    some = Change(faults=(Fault("notes[*]", 0.3),))
    runs = simulate(mapped(), some, seeds=50)
    assert runs == simulate(mapped(), some, seeds=50)
    assert 0 < runs.statuses["failed"] < 50, "two attempts: about half of the runs fail"
    lost = [run for run in runs.runs if run.status == "succeeded" and run.wall_s > 4.4]
    assert lost, "a retry costs its time"


def test_spread_comes_of_times_of_the_same_code() -> None:
    predicted = simulate(mapped(), Change(), seeds=40)
    assert predicted.runs[0].wall_s == pytest.approx(4.0), "the first as recorded"
    assert {round(run.wall_s, 6) for run in predicted.runs} == {2.0, 4.0}
    low, high = predicted.spread_s
    assert low <= predicted.wall_s <= high


def test_advice_is_tried_and_sorted() -> None:
    first, second = advise(mapped(limits={"gpu": 1}), Change(), 2)
    assert first.words == "slots of gpu: no limit instead of 1"
    assert (first.wall_s, first.saves) == (pytest.approx(4.0), pytest.approx(1 - 4 / 11))
    assert second.words == "the code of notes[*] twice as fast"
    assert simulate(mapped(limits={"gpu": 1}), second.change).wall_s == pytest.approx(6.0)


def test_what_costs_is_counted_once_for_what_ended() -> None:
    found = simulate(recording(called()), Change())
    assert found.tokens == 0
    assert found.speedup == 1.0


def test_a_run_that_did_not_come_to_its_end_is_told_from_one_that_did() -> None:
    *begun, end = called()
    cancelled = RunFinished("cancelled", Usage(), ("enough",), 8.0)
    told = [recording(records) for records in ([*begun, end], begun, [*begun, cancelled])]
    assert [found.ended for found in told] == [True, False, False]
    assert [simulate(found, Change()).ended for found in told] == [True, False, False]


def test_a_resumed_run_and_half_a_run_are_refused() -> None:
    with pytest.raises(RunError, match="several processes"):
        recording([*called()[:-1], RunResumed(RunId("r"), 2, "2026-11-22T11:00:00+00:00", 9.0)])
    with pytest.raises(RunError, match="no beginning"):
        recording([])
