"""The scheduler alone: signals in, commands out, without tasks, a clock or an event loop."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from tests.engine.scheduler.virtual_executor import VirtualExecutor, pause
from tests.engine.virtual_run import echo, give, node
from weft.core.budget import Budget
from weft.core.errors import ModelUnavailable, NodeFailed
from weft.core.events import NodeFinished, NodeStarted
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine import (
    ANY,
    AskHuman,
    BudgetLimit,
    Expand,
    Graph,
    Inputs,
    Node,
    NodeContext,
    NodeFn,
    Retry,
    RunOptions,
    first_valid,
)
from weft.engine.scheduler import lifecycle, scheduler
from weft.engine.scheduler.commands import (
    Answered,
    CancelRequested,
    ClearTimers,
    Raised,
    Returned,
    SetTimer,
    Start,
    Stop,
    TimerFired,
)
from weft.engine.scheduler.scheduler import Scheduler


def scheduled(*nodes: Node, **options: Any) -> Scheduler:
    return Scheduler(Graph("test", nodes), RunOptions(**options))


def starts(commands: list[Any]) -> dict[str, Start]:
    return {str(c.state.node.id): c for c in commands if isinstance(c, Start)}


def ends(commands: list[Any]) -> dict[str, str]:
    return {str(c.node): c.outcome.status for c in commands if isinstance(c, NodeFinished)}


def returned(start: Start, value: Any) -> Returned:
    return Returned(start.state, start.epoch, value)


def test_it_starts_what_has_no_inputs_and_then_what_waited_for_it() -> None:
    decide = scheduled(node("a", echo), node("b", echo, "a"), node("c", echo, "a", "b"))
    a = starts(decide.begin())["a"]
    commands = decide.advance([returned(a, 1)], 5.0)
    assert [type(command) for command in commands] == [NodeFinished, NodeStarted, Start]
    assert commands[0].at_s == 5.0  # type: ignore[union-attr]
    b = starts(commands)["b"]
    assert b.argument == {"a": 1}
    c = starts(decide.advance([returned(b, 2)], 6.0))["c"]
    assert c.argument == {"a": 1, "b": 2}
    assert not decide.done
    decide.advance([returned(c, 3)], 7.0)
    assert decide.done


def test_signals_of_one_turn_are_taken_in_their_order() -> None:
    decide = scheduled(node("a", echo), node("b", echo), node("j", echo, *"ab", join=ANY))
    begun = starts(decide.begin())
    commands = decide.advance([returned(begun["b"], "B"), returned(begun["a"], "A")], 1.0)
    assert starts(commands)["j"].argument == {"b": "B"}


def test_answers_that_come_late_are_ignored() -> None:
    retry = Retry(attempts=2, delay_s=1, jitter=0)
    decide = scheduled(node("a", echo, retry=retry, timeout_s=5))
    first = starts(decide.begin())["a"]
    commands = decide.advance([TimerFired(first.state, 1, "timeout")], 5.0)
    assert Stop(first.state) in commands
    assert decide.advance([returned(first, "late")], 5.5) == []
    assert decide.advance([Raised(first.state, first.epoch, NodeFailed("late"))], 5.5) == []
    (timer,) = [c for c in commands if isinstance(c, SetTimer)]
    assert (timer.kind, timer.delay_s) == ("retry", 1)
    second = starts(decide.advance([TimerFired(*timer[:3])], 6.0))["a"]
    assert (
        decide.advance([TimerFired(first.state, 1, "timeout"), TimerFired(*timer[:3])], 6.5) == []
    )
    assert ends(decide.advance([returned(second, "on time")], 7.0)) == {"a": "succeeded"}


def test_a_timer_that_fires_after_it_was_cleared_does_nothing() -> None:
    decide = scheduled(node("a", echo, timeout_s=5), node("b", echo))
    begun = starts(decide.begin())
    commands = decide.advance([returned(begun["a"], 1)], 5.0)
    assert ClearTimers(begun["a"].state) in commands
    assert decide.advance([TimerFired(begun["a"].state, 1, "timeout")], 5.0) == []


def test_a_timer_that_fires_after_the_fallback_began_leaves_it_alone() -> None:
    decide = scheduled(node("a", echo, timeout_s=5, fallback=node("spare", echo)))
    a = starts(decide.begin())["a"]
    failed = Raised(a.state, a.epoch, NodeFailed("x"))
    commands = decide.advance([failed, TimerFired(a.state, 1, "timeout")], 5.0)
    assert list(starts(commands)) == ["a/spare"]
    assert not ends(commands)


def test_what_nobody_knows_is_ignored() -> None:
    decide = scheduled(node("a", echo))
    decide.begin()
    assert decide.advance([Answered(NodeId("a"), 1), Answered(NodeId("x"), 1)], 1.0) == []
    assert decide.advance([CancelRequested("no", NodeId("x"))], 1.0) == []


def test_after_the_end_nothing_happens_any_more() -> None:
    decide = scheduled(node("a", echo), deadline_s=5)
    a = starts(decide.begin())["a"]
    decide.advance([returned(a, 1)], 5.0)
    assert decide.advance([TimerFired(None, 0, "deadline"), CancelRequested("late")], 5.0) == []
    assert decide.ended_by is None


def test_a_cancelled_run_stops_what_runs_and_starts_nothing() -> None:
    decide = scheduled(node("a", echo), node("b", echo, "a"), node("c", echo))
    begun = starts(decide.begin())
    commands = decide.advance([CancelRequested("no"), returned(begun["a"], 1)], 1.0)
    assert [c.state.node.id for c in commands if isinstance(c, Stop)] == ["c", "a"]
    assert ends(commands) == {"c": "cancelled", "b": "cancelled", "a": "cancelled"}
    assert not starts(commands)


def test_the_decisions_know_no_event_loop_clock_or_thread() -> None:
    for module in (scheduler, lifecycle):
        tree = ast.parse(inspect.getsource(module))
        imported = {
            name.split(".")[0]
            for found in ast.walk(tree)
            if isinstance(found, ast.Import | ast.ImportFrom)
            for name in (
                [found.module or ""]
                if isinstance(found, ast.ImportFrom)
                else [alias.name for alias in found.names]
            )
        }
        assert imported <= {
            "__future__",
            "collections",
            "dataclasses",
            "heapq",
            "itertools",
            "typing",
            "weft",
        }


def takes(seconds: float, value: Any = "done") -> NodeFn:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        await pause(seconds)
        if isinstance(value, Exception):
            raise value
        return value

    return work


def ran(*nodes: Node, answer: Any = None, **options: Any) -> VirtualExecutor:
    executor = VirtualExecutor(Graph("test", nodes), RunOptions(**options), answer)
    executor.run()
    return executor


def outcomes(executor: VirtualExecutor) -> dict[str, tuple[str, float]]:
    ended = [event for event in executor.events if isinstance(event, NodeFinished)]
    return {str(event.node): (event.outcome.status, event.at_s) for event in ended}


def test_a_whole_run_needs_no_event_loop() -> None:
    async def grows(context: NodeContext, inputs: Inputs) -> Expand:
        await pause(1)
        context.append([node("g/side", takes(9))])
        children = node("g/x", takes(2)), node("g/y", takes(3), "g/x")
        return Expand(children, tuple(child.id for child in children))

    async def flaky(context: NodeContext, inputs: Inputs) -> str:
        if context.attempt == 1:
            raise ModelUnavailable("x")
        return "second"

    executor = ran(
        node("g", grows),
        node("flaky", flaky, retry=Retry(delay_s=4, jitter=0)),
        node("slow", takes(50), timeout_s=7),
        node("asks", give(AskHuman("go?"))),
        node("j", echo, "flaky", "slow", join=first_valid()),
        answer="yes",
    )
    assert outcomes(executor) == {
        "g": ("succeeded", 10),
        "g/side": ("succeeded", 10),
        "g/x": ("succeeded", 3),
        "g/y": ("succeeded", 6),
        "flaky": ("succeeded", 4),
        "slow": ("cancelled", 4),
        "asks": ("succeeded", 0),
        "j": ("succeeded", 4),
    }


def test_a_budget_stops_a_run_without_an_event_loop() -> None:
    async def spends(context: NodeContext, inputs: Inputs) -> None:
        await pause(2)
        context.spend(Usage(prompt_tokens=5))
        await pause(2)

    executor = ran(node("a", spends), node("b", takes(99)), limit=BudgetLimit(Budget(tokens=5)))
    assert outcomes(executor) == {"a": ("cancelled", 2), "b": ("cancelled", 2)}


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_slots_without_an_event_loop(slots: int) -> None:
    executor = ran(*(node(f"n{i}", takes(1)) for i in range(10)), max_concurrency=slots)
    assert executor.now == 10 / slots
