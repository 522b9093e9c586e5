"""Those who watch a run: they see every event, at once and in order, and cannot break it."""

from __future__ import annotations

from tests.engine.play import after, echo, give, node, play
from weft.core.events import Event, NodeFinished, NodeStarted, RunFinished, RunStarted
from weft.engine.trace import Trace


def test_every_listener_sees_the_same_events_in_the_same_order() -> None:
    second: list[Event] = []
    played = play(node("a", after(1, 1)), node("b", echo, "a"), listeners=[second.append])
    assert second == played.events
    assert [type(e) for e in second] == [
        RunStarted,
        NodeStarted,
        NodeFinished,
        NodeStarted,
        NodeFinished,
        RunFinished,
    ]


def test_a_listener_that_raises_is_told_no_more_and_the_result_says_so() -> None:
    seen: list[Event] = []

    def fragile(event: Event) -> None:
        seen.append(event)
        if len(seen) == 3:
            raise RuntimeError("my screen is gone")

    played = play(node("a", after(1, 1)), node("b", echo, "a"), listeners=[fragile])
    assert len(seen) == 3
    assert played.result.status == "succeeded"
    assert played.result.reasons == (
        "a listener raised RuntimeError('my screen is gone') and is told no more",
    )


def test_a_listener_that_raises_does_not_silence_the_others() -> None:
    def broken(event: Event) -> None:
        raise ValueError

    after_it: list[Event] = []
    played = play(node("a", give(1)), listeners=[broken, broken, after_it.append])
    assert after_it == played.events


def test_the_start_names_the_graph_its_nodes_and_its_limits() -> None:
    played = play(
        node("a", give(1), resource="r", kind="tool"),
        node("b", echo, "a"),
        limits={"r": 2},
        max_concurrency=3,
    )
    (started,) = played.all(RunStarted)
    assert (started.flow, started.limits) == ("test", {"r": 2, "": 3})
    assert [(n.id, n.kind, n.sources, n.resource, n.parent) for n in started.nodes] == [
        ("a", "tool", (), "r", None),
        ("b", "call", ("a",), None, None),
    ]


def test_a_trace_is_a_listener() -> None:
    trace = Trace()
    played = play(node("a", after(2, 1)), node("b", after(1, 1), "a"), listeners=[trace])
    assert trace.wall_s == played.result.wall_s == 3
    assert trace.all_busy_s() == 3
