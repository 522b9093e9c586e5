"""Who is cancelled, how soon, and what is told apart from our cancellation."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from tests.engine.event_stream import assert_well_formed
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
    script,
)
from weft.core.errors import InternalError, ModelUnavailable, UnknownReference
from weft.core.events import Event, NodeFinished, RunFinished
from weft.core.ids import NodeId
from weft.engine import Expand, Graph, Inputs, NodeContext, Retry, Run, RunOptions
from weft.engine.scheduler.scheduler import Scheduler


def test_a_cancelled_run_keeps_what_is_done_and_ends_everything_else() -> None:
    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        return Expand((node("g/x", for_ever),), (NodeId("g/x"),))

    played = play(
        node("done", after(1, "D")),
        node("running", for_ever),
        node("grown", after(0, 1)),
        node("g", grows),
        node("waiting", echo, "running"),
        node("backoff", fail(ModelUnavailable("x")), retry=Retry(delay_s=100, jitter=0)),
        at={3: lambda run: run.cancel("enough")},
    )
    assert played.statuses == {
        "done": "succeeded",
        "grown": "succeeded",
        "running": "cancelled",
        "g": "cancelled",
        "g/x": "cancelled",
        "waiting": "cancelled",
        "backoff": "cancelled",
    }
    assert played.result.status == "cancelled"
    assert played.result.reasons == ("enough",)
    assert played.result.wall_s == 3
    assert "enough" in str(played["waiting"].failure)


def test_a_cancelled_node_cuts_off_its_cone_only() -> None:
    played = play(
        node("a", for_ever),
        node("cone", echo, "a"),
        node("b", after(5, "B")),
        at={1: lambda run: run.cancel("not this", NodeId("a"))},
    )
    assert played.statuses == {"a": "cancelled", "cone": "skipped", "b": "succeeded"}
    assert played.result.status == "partial"
    assert "needs a, which was cancelled" in str(played["cone"].failure)


def test_a_cancelled_node_takes_neither_retry_nor_fallback_nor_default() -> None:
    played = play(
        node("a", for_ever, retry=Retry(), fallback=node("s", give(1)), default=2),
        at={1: lambda run: run.cancel("not this", NodeId("a"))},
    )
    assert played["a"].status == "cancelled"


def test_a_child_can_be_cancelled_alone() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> Expand:
        children = node("a/x", for_ever), node("a/y", after(2, "Y"))
        return Expand(children, tuple(child.id for child in children))

    played = play(
        node("a", work, default="D"), at={1: lambda run: run.cancel("not this", NodeId("a/x"))}
    )
    assert played.statuses == {"a": "succeeded", "a/x": "cancelled", "a/y": "succeeded"}
    assert played.value("a") == "D"


def test_cancelling_who_has_ended_or_does_not_exist_does_nothing() -> None:
    played = play(
        node("a", give(1)),
        node("b", after(5, 2)),
        at={
            1: lambda run: run.cancel("late", NodeId("a")),
            2: lambda run: run.cancel("who", NodeId("nobody")),
        },
    )
    assert played.result.status == "succeeded"


def test_the_first_reason_counts() -> None:
    def twice(run: Run) -> None:
        run.cancel("first")
        run.cancel("second")

    played = play(node("a", for_ever), at={1: twice})
    assert played.result.reasons == ("first",)


def test_a_run_can_be_cancelled_before_it_begins_and_after_it_has_ended() -> None:
    clock = WatchedClock()
    events: list[Event] = []

    async def main() -> None:
        run = Run(Graph("g", [node("a", for_ever)]), clock=clock, listeners=[events.append])
        run.cancel("never mind")
        result = await ended(run)
        assert result.status == "cancelled"
        assert result.wall_s == 0
        run.cancel("again")
        await assert_nothing_left(clock)
        assert_well_formed(events, result)

    clock.run(main())


def test_a_run_whose_loop_is_closed_can_still_be_cancelled() -> None:
    run = Run(Graph("g", [node("a", give(1))]))
    assert asyncio.run(run.wait()).status == "succeeded"
    run.cancel("too late")


def test_a_run_runs_once() -> None:
    async def main() -> None:
        run = Run(Graph("g", [node("a", give(1))]))
        await run.wait()
        with pytest.raises(InternalError, match="runs once"):
            await run.wait()

    asyncio.run(main())


def test_cancellation_reaches_the_work_within_one_turn_of_the_loop() -> None:
    """One turn in which the scheduler decides; in the next the work unwinds."""
    turns_until_seen: list[int] = []

    async def main() -> None:
        turn = 0
        cancelled_in = 0

        async def work(_: NodeContext, inputs: Inputs) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                turns_until_seen.append(turn - cancelled_in)

        def count() -> None:
            nonlocal turn
            turn += 1
            if turn < 50:
                asyncio.get_running_loop().call_soon(count)

        run = Run(Graph("g", [node(f"n{i}", work) for i in range(10)]))
        waiting = asyncio.create_task(run.wait())
        count()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        cancelled_in = turn
        run.cancel()
        assert (await waiting).status == "cancelled"

    asyncio.run(main())
    assert len(turns_until_seen) == 10
    assert max(turns_until_seen) <= 2


def test_cancelling_the_caller_cancels_the_run_and_stays_a_cancellation() -> None:
    clock = WatchedClock()
    events: list[Event] = []
    unwound: list[float] = []

    async def tidy(_: NodeContext, inputs: Inputs) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0.5)
            unwound.append(clock.now())

    async def main() -> None:
        run = Run(Graph("g", [node("a", tidy)]), clock=clock, listeners=[events.append])
        caller = asyncio.create_task(run.wait())
        await asyncio.sleep(1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert caller.cancelled()
        await assert_nothing_left(clock)

    clock.run(main())
    assert unwound == [1.5]
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert (last.status, last.leaked) == ("cancelled", ())
    assert [e.outcome.status for e in events if isinstance(e, NodeFinished)] == ["cancelled"]


@pytest.mark.parametrize(
    ("timeout_s", "end_s"), [(None, 2.0), (0.9, 1.0)], ids=["running", "unwinding after the end"]
)
def test_cancelling_the_caller_while_works_unwind_forces_the_end(
    timeout_s: float | None, end_s: float
) -> None:
    clock = WatchedClock()
    events: list[Event] = []

    async def stubborn(_: NodeContext, inputs: Inputs) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)

    graph = Graph("g", [node("a", stubborn, timeout_s=timeout_s)])

    async def main() -> None:
        options = RunOptions(grace_s=10)
        run = Run(graph, options, clock=clock, listeners=[events.append])
        caller = asyncio.create_task(run.wait())
        asyncio.get_running_loop().call_later(1, caller.cancel)
        asyncio.get_running_loop().call_later(2, caller.cancel)
        with pytest.raises(asyncio.CancelledError):
            await caller
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert (last.leaked, last.at_s, clock.now()) == (("a",), end_s, end_s)
        await asyncio.sleep(10)
        await assert_nothing_left(clock)

    clock.run(main())


@pytest.mark.parametrize("turns", range(1, 9))
def test_a_caller_cancelled_as_the_last_node_ends_leaves_a_whole_record(turns: int) -> None:
    clock = WatchedClock()
    events: list[Event] = []

    async def main() -> None:
        run = Run(Graph("g", [node("a", give(1))]), clock=clock, listeners=[events.append])
        caller = asyncio.create_task(run.wait())
        for _ in range(turns):
            await asyncio.sleep(0)
        caller.cancel()
        with suppress(asyncio.CancelledError):
            await caller
        await assert_nothing_left(clock)

    clock.run(main())
    assert [event for event in events if isinstance(event, RunFinished)] == events[-1:]


def test_a_user_s_own_cancelled_error_is_a_failure() -> None:
    played = play(
        node("a", fail(asyncio.CancelledError(), 1)),
        node("b", after(5, "B")),
        node("cone", echo, "a"),
    )
    assert played.statuses == {"a": "failed", "b": "succeeded", "cone": "skipped"}
    assert "its own code raised CancelledError" in str(played["a"].failure)
    assert played.result.status == "failed"


def test_a_work_that_cancels_its_own_task_has_failed() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    played = play(node("a", work), node("b", after(5, "B")))
    assert played.statuses == {"a": "failed", "b": "succeeded"}


def test_a_work_that_awaits_a_cancelled_task_has_failed() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> None:
        task = asyncio.create_task(asyncio.sleep(9))
        asyncio.get_running_loop().call_later(1, task.cancel)
        await task

    played = play(node("a", work), node("b", after(5, "B")))
    assert played.statuses == {"a": "failed", "b": "succeeded"}


async def swallow(_: NodeContext, inputs: Inputs) -> str:
    """Does not react to its first cancellation."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(100)
    await asyncio.sleep(50)
    return "too late"


def test_code_that_swallows_its_cancellation_is_named_after_the_grace_period() -> None:
    played = play(
        node("a", swallow),
        node("b", for_ever),
        grace_s=2,
        at={1: lambda run: run.cancel("enough")},
    )
    assert played.result.leaked == ("a",)
    assert played.result.wall_s == 3
    assert "still running after cancellation: a" in played.result.reasons
    assert played["a"].status == "cancelled"


def test_what_a_leaked_work_returns_says_or_spends_counts_no_more() -> None:
    from weft.core.values import Usage

    async def stubborn(context: NodeContext, inputs: Inputs) -> str:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
                break
        context.log("still here")
        context.stream("text")
        context.spend(Usage(prompt_tokens=1))
        return "too late"

    clock = WatchedClock()
    events: list[Event] = []

    async def main() -> None:
        run = Run(
            Graph("g", [node("a", stubborn)]),
            RunOptions(grace_s=1),
            clock=clock,
            listeners=[events.append],
        )
        asyncio.get_running_loop().call_later(1, run.cancel)
        result = await ended(run)
        await asyncio.sleep(20)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert_well_formed(events, result)
        assert result.usage == Usage()

    clock.run(main())


def test_a_leaked_attempt_cannot_act_for_the_next_one() -> None:
    async def first(context: NodeContext, inputs: Inputs) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        await asyncio.sleep(2)
        assert (context.attempt, context.scope) == (1, "a")
        with pytest.raises(Exception, match="attempt 1 is over"):
            context.append([node("a/stray", give(1))])
        with pytest.raises(Exception, match="attempt 1 is over"):
            await context.outcome(NodeId("b"))
        seen.append("first")

    seen: list[str] = []
    retry = Retry(delay_s=1, jitter=0, attempts=2)
    played = play(
        node("a", script(first, after(5, "second")), timeout_s=1, retry=retry, resource="r"),
        node("b", after(9, 1)),
        limits={"r": 1},
    )
    # its second attempt takes 5 s and has 1 s
    assert played.statuses == {"a": "failed", "b": "succeeded"}
    assert seen == ["first"]


def test_code_that_needs_time_to_unwind_gets_it_within_the_grace_period() -> None:
    async def tidy(_: NodeContext, inputs: Inputs) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(0.5)

    played = play(node("a", tidy), at={1: lambda run: run.cancel("enough")})
    assert played.result.leaked == ()
    assert played.result.wall_s == 1.5


def test_an_async_generator_is_closed_on_cancellation() -> None:
    closed: list[float] = []
    clock = WatchedClock()

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(1000):
                await asyncio.sleep(1)
                yield number
        finally:
            closed.append(clock.now())

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        async for number in numbers():
            seen = number
        return seen

    play(node("a", work), at={3.5: lambda run: run.cancel("enough")}, clock=clock)
    assert closed == [3.5]


def test_cancellation_reaches_tasks_of_a_group_inside_a_work() -> None:
    seen: list[str] = []

    async def part(name: str) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            seen.append(name)
            raise

    async def work(_: NodeContext, inputs: Inputs) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(part("x"))
            group.create_task(part("y"))

    play(node("a", work, timeout_s=1))
    assert sorted(seen) == ["x", "y"]


def test_a_timeout_inside_a_work_is_the_work_s_own() -> None:
    async def work(_: NodeContext, inputs: Inputs) -> str:
        try:
            async with asyncio.timeout(1):
                await asyncio.sleep(100)
        except TimeoutError:
            return "gave up"
        return "never"

    assert play(node("a", work)).value("a") == "gave up"
    assert play(node("a", work, timeout_s=0.5)).error("a") == "NodeTimeout"


def test_an_appended_node_is_cancelled_with_who_appended_it() -> None:
    async def work(context: NodeContext, inputs: Inputs) -> None:
        context.append([node("a/x", for_ever)])
        await for_ever(context, inputs)

    played = play(
        node("a", work), node("b", after(3, 1)), at={1: lambda run: run.cancel("no", NodeId("a"))}
    )
    assert played.statuses == {"a": "cancelled", "a/x": "cancelled", "b": "succeeded"}
    order = [e.node for e in played.all(NodeFinished)]
    assert order.index(NodeId("a/x")) < order.index(NodeId("a"))


def test_keyboard_interrupt_in_a_work_ends_the_program_and_leaves_nothing_behind() -> None:
    events: list[Event] = []

    async def main() -> None:
        graph = Graph("g", [node("a", fail(KeyboardInterrupt())), node("b", for_ever)])
        await Run(graph, listeners=[events.append]).wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.status == "cancelled"


@pytest.mark.parametrize(("times", "leaked"), [(1, ()), (2, ("a",))])
def test_ctrl_c_ends_a_run_cleanly_and_a_second_one_forces_it(
    times: int, leaked: tuple[str, ...]
) -> None:
    events: list[Event] = []

    def press() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)

    async def stubborn(_: NodeContext, inputs: Inputs) -> None:
        press()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if times == 2:
                press()
            await asyncio.sleep(0.001)

    async def main() -> None:
        options = RunOptions(grace_s=60.0)
        await Run(Graph("g", [node("a", stubborn)]), options, listeners=[events.append]).wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert (last.status, last.leaked) == ("cancelled", leaked)


def test_a_bug_of_ours_ends_the_run_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Scheduler, "advance", broken)
    clock = WatchedClock()

    async def main() -> None:
        nodes = [node("a", after(1, 1)), node("b", for_ever), node("c", after(1, 1))]
        with pytest.raises(InternalError, match="please report it"):
            await Run(Graph("g", nodes), RunOptions(deadline_s=9), clock=clock).wait()
        await assert_nothing_left(clock)

    clock.run(main())


def test_a_run_that_cannot_begin_leaves_nothing_behind() -> None:
    clock = WatchedClock()

    async def main() -> None:
        nodes = [node("a", for_ever, timeout_s=5), node("b", for_ever, timeout_s="soon")]
        with pytest.raises(TypeError):
            await Run(Graph("g", nodes), clock=clock).wait()
        await assert_nothing_left(clock)

    clock.run(main())


def test_cancelling_a_node_that_is_not_there_says_so() -> None:
    def cancel(run: Run) -> None:
        with pytest.raises(UnknownReference, match="nobody"):
            run.cancel("no", NodeId("nobody"))

    assert play(node("a", after(2, 1)), at={1: cancel}).statuses == {"a": "succeeded"}
