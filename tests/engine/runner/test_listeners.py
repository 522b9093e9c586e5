"""Those who watch a run: they see every event, at once and in order, and cannot break it."""

from __future__ import annotations

import asyncio

import pytest

from tests.engine.event_stream import assert_well_formed
from tests.engine.virtual_run import WatchedClock, after, echo, ended, for_ever, give, node, play
from weft.core.events import (
    Event,
    Listener,
    NodeFinished,
    NodeLogged,
    NodeStarted,
    NodeStreamed,
    RunFinished,
    RunStarted,
    Subscription,
)
from weft.core.ids import NodeId
from weft.engine import Graph, Inputs, Node, NodeContext, Run
from weft.engine.analysis.trace import Trace
from weft.engine.runner.result import RunResult


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


@pytest.mark.parametrize("error", [RuntimeError("gone"), asyncio.CancelledError("gone")])
def test_a_listener_that_raises_is_told_no_more_and_the_result_says_so(
    error: BaseException,
) -> None:
    seen: list[Event] = []

    def fragile(event: Event) -> None:
        seen.append(event)
        if len(seen) == 3:
            raise error

    played = play(node("a", after(1, 1)), node("b", echo, "a"), listeners=[fragile])
    assert len(seen) == 3
    assert played.result.status == "succeeded"
    assert played.result.reasons == (f"a listener raised {error!r} and is told no more",)


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


def test_a_listener_may_cancel_the_run_at_any_event() -> None:
    def work() -> list[Node]:
        return [node("a", after(1, 1)), node("b", after(1, 1), "a"), node("c", for_ever)]

    for number in range(6):
        seen: list[Event] = []
        runs: list[Run] = []

        def cancel(event: Event, number: int = number) -> None:
            seen.append(event)  # noqa: B023 - it ends with this round
            if len(seen) == number + 1:  # noqa: B023
                runs[0].cancel("by a listener")  # noqa: B023

        clock = WatchedClock()
        runs.append(Run(Graph("g", work()), clock=clock, listeners=[cancel]))
        result = clock.run(ended(runs[0]))
        assert result.status == "cancelled"
        assert_well_formed(seen, result)


def test_a_trace_is_a_listener() -> None:
    trace = Trace()
    played = play(node("a", after(2, 1)), node("b", after(1, 1), "a"), listeners=[trace])
    assert trace.wall_s == played.result.wall_s == 3
    assert trace.all_busy_s() == 3


def chatty() -> list[Node]:
    """A node that logs, streams, and waits for a node that it appends."""

    async def work(context: NodeContext, _: Inputs) -> str:
        context.log("begins")
        context.stream("a piece")
        child = NodeId(f"{context.scope}/child")
        context.append([Node(child, give(1))])
        return (await context.outcome(child)).status

    return [node("a", work), node("b", echo, "a")]


def make_listener(*listeners: Listener) -> tuple[list[Event], RunResult]:
    """What is made ready for the listeners of a run of `chatty`, and its result."""
    ready: list[Event] = []

    def redact(event: Event) -> list[Event]:
        ready.append(event)
        return [event]

    async def main() -> RunResult:
        return await Run(Graph("test", chatty()), listeners=listeners, redact=redact).wait()

    return ready, asyncio.run(main())


def test_a_subscription_is_told_its_kinds_and_the_others_are_not_made_ready() -> None:
    logged: list[Event] = []
    ready, result = make_listener(Subscription(frozenset((NodeLogged,)), logged.append))
    assert result.value("a") == "succeeded"
    assert [type(event) for event in logged] == [NodeLogged]
    assert ready == logged
    assert make_listener()[0] == []


def test_a_subscription_beside_a_listener_is_told_no_more_than_its_kinds() -> None:
    logged: list[Event] = []
    everything: list[Event] = []
    subscription = Subscription(frozenset((NodeLogged,)), logged.append)
    ready, result = make_listener(subscription, everything.append)
    assert result.value("a") == "succeeded"
    assert ready == everything
    assert [event for event in everything if type(event) is NodeLogged] == logged


def test_what_is_held_back_of_a_stream_is_told_with_whatever_ends_it() -> None:
    streamed: list[Event] = []
    ready, _ = make_listener(Subscription(frozenset((NodeStreamed,)), streamed.append))
    assert NodeFinished in [type(event) for event in ready]  # the redactor may have a rest by then
    assert [event for event in ready if type(event) is NodeStreamed] == streamed


def test_a_subscription_that_raises_is_told_no_more() -> None:
    def broken(event: Event) -> None:
        raise ValueError(type(event).__name__)

    _, result = make_listener(Subscription(frozenset((NodeLogged,)), broken))
    assert result.reasons == ("a listener raised ValueError('NodeLogged') and is told no more",)
