"""Plans as graphs: what they come to is what plain Python comes to, in any order of completion."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planner.plan_graph import JOIN, graph_of
from tests.planner.runnable import ComputingTools, call_key, compute, evaluate, plans
from weft.core.errors import UnknownReference
from weft.core.ids import NodeId
from weft.engine import Node, NodeContext, Run, RunResult
from weft.engine.graph.graph import Graph
from weft.planner.compile import step_node
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition
from weft.testing import FakeClock


def run(plan: Plan, tools: ComputingTools) -> RunResult:
    return FakeClock().run(Run(graph_of(plan, tools), clock=None).wait())


def statuses(result: RunResult) -> dict[str, str]:
    return {node: outcome.status for node, outcome in result.outcomes.items()}


ADD = PlanStep(1, "add", {"a": 1, "b": 2})


@given(plans(ordered=True), st.integers(0, 1000))
def test_a_plan_comes_to_what_plain_python_comes_to(plan: Plan, seed: int) -> None:
    tools = ComputingTools(seed)
    result = run(plan, tools)
    expected = evaluate(plan)
    assert result.status == "succeeded"
    assert sorted(tools.calls) == sorted(expected.calls)
    for step in plan.steps:
        outcome = result.outcomes[NodeId(f"s{step.number}")]
        if step.number in expected.left_out:
            assert outcome.status == "skipped"
            assert outcome.failure is None
        else:
            assert outcome.value == expected.values[step.number]
    assert tools.running == 0


@given(plans(most=6))
@settings(max_examples=20)
def test_a_hundred_orders_of_completion_give_one_answer(plan: Plan) -> None:
    answers = [run(plan, ComputingTools(seed)).outcomes[JOIN] for seed in range(100)]
    assert all(answer == answers[0] for answer in answers)


@given(plans(ordered=True), st.integers(0, 1000))
def test_a_step_starts_after_those_that_it_waits_for(plan: Plan, seed: int) -> None:
    waiting = {step.number: step.after for step in plan.steps}
    ended: list[int] = []

    async def call(_: NodeContext, step: PlanStep, arguments: Mapping[str, Any]) -> Any:
        assert set(waiting[step.number]) <= {*ended}
        await asyncio.sleep((seed * step.number) % 7)
        if step.over is None:
            ended.append(step.number)
        return compute(step.tool, arguments)

    single = replace(plan, steps=tuple(replace(s, after=_calls(plan, s.after)) for s in plan.steps))
    waiting = {step.number: step.after for step in single.steps}
    sources = {step.number: NodeId(f"s{step.number}") for step in single.steps}
    nodes = [step_node(step, call, sources[step.number], sources) for step in single.steps]
    result = FakeClock().run(Run(Graph("plan", tuple(nodes))).wait())
    assert result.status == "succeeded"


def _calls(plan: Plan, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Those of `numbers` that are steps with one call."""
    return tuple(s.number for s in plan.steps if s.number in numbers and s.over is None)


@given(plans(ordered=True), st.data())
def test_a_failed_call_blocks_its_cone_and_nothing_else(plan: Plan, data: st.DataObject) -> None:
    calls = sorted(set(evaluate(plan).calls))
    if not calls:
        return
    broken = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=2))
    tools = ComputingTools(data.draw(st.integers(0, 99)), dict.fromkeys(broken, 99))
    result = run(plan, tools)
    expected = evaluate(plan, broken)
    assert set(expected.calls) <= set(tools.calls)
    for step in plan.steps:
        outcome = result.outcomes[NodeId(f"s{step.number}")]
        if step.number in expected.values:
            assert outcome.value == expected.values[step.number]
        elif step.number in expected.left_out:
            assert outcome.failure is None
        elif step.number in expected.failed:
            assert outcome.status == "failed"
            assert "out of order" in str(outcome.failure)
        else:
            assert not outcome.ok
            # A map that streams knows its own condition before what it goes over has failed.
            unwanted = step.over is not None and step.number in evaluate(plan).left_out
            told = any(f"s{number}" in str(outcome.failure) for number in expected.failed)
            assert told or (unwanted and outcome.failure is None), outcome


def test_the_join_has_the_shape_that_was_asked_for() -> None:
    steps = (ADD, PlanStep(2, "add", {"a": Ref(1, ("sum",)), "b": 1}))
    one = Plan(steps, (Ref(2, ("sum",)),))
    two = Plan(steps, (Ref(1, ("sum",)), Ref(2, ("parts", 0))))
    assert run(one, ComputingTools()).outcomes[JOIN].value == 4
    assert run(two, ComputingTools()).outcomes[JOIN].value == {"$1.sum": 3, "$2.parts[0]": 3}
    everything = run(Plan(steps), ComputingTools()).outcomes[JOIN].value
    assert everything == {
        "$1": compute("add", {"a": 1, "b": 2}),
        "$2": compute("add", {"a": 3, "b": 1}),
    }


def test_a_join_does_without_what_was_left_out_but_not_without_what_failed() -> None:
    never = PlanStep(2, "add", {"a": 1, "b": 1}, when=StepCondition(Ref(1, ("sum",)), ">", 3))
    plan = Plan((ADD, never), (Ref(1, ("sum",)), Ref(2)))
    assert run(plan, ComputingTools()).outcomes[JOIN].value == {"$1.sum": 3}
    only = Plan((ADD, never), (Ref(2),))
    assert run(only, ComputingTools()).outcomes[JOIN].status == "skipped"
    broken = ComputingTools(failing={call_key("add", {"a": 1, "b": 2}): 1})
    failed = run(plan, broken).outcomes[JOIN]
    assert failed.failure is not None
    assert failed.failure.message.startswith("step 1 failed: ToolRaised: add is out of order")


def test_an_empty_plan_comes_to_nothing() -> None:
    assert run(Plan(), ComputingTools()).outcomes[JOIN].value == {}


def test_a_map_of_a_map_takes_items_one_by_one() -> None:
    numbers = PlanStep(1, "spread", {"n": 3})
    each = PlanStep(2, "add", {"a": Ref("item"), "b": 0}, over=Ref(1))
    again = PlanStep(3, "add", {"a": Ref("item", ("sum",)), "b": Ref("index")}, over=Ref(2))
    started: dict[str, float] = {}

    class Uneven(ComputingTools):
        """The first item takes 5 s, whatever else is done with it."""

        async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
            started[call_key(name, arguments)] = clock.now()
            await asyncio.sleep(5 if arguments == {"a": 0, "b": 0} else 0)
            return compute(name, arguments)

    clock = FakeClock()
    found = clock.run(Run(graph_of(Plan((numbers, each, again), (Ref(3),)), Uneven())).wait())
    assert [value["sum"] for value in found.value(JOIN)] == [0, 2, 4]  # type: ignore[attr-defined]
    assert started[call_key("add", {"a": 1, "b": 1})] == 0  # long before the first item


def test_a_map_may_also_refer_to_the_whole_of_what_it_goes_over() -> None:
    numbers = PlanStep(1, "spread", {"n": 3})
    each = PlanStep(2, "add", {"a": Ref("item"), "b": 0}, over=Ref(1))
    whole = Ref(2)  # one object in two places
    again = PlanStep(3, "label", {"text": "x", "of": (whole, Ref("index"))}, over=whole)
    result = run(Plan((numbers, each, again), (Ref(3),)), ComputingTools(1))
    found: Any = result.value(JOIN)
    assert [len(value["of"][0]) for value in found] == [3, 3, 3]


def test_a_map_over_no_list_is_refused_in_words() -> None:
    plan = Plan((ADD, PlanStep(2, "add", {"a": 1, "b": 1}, over=Ref(1, ("sum",)))))
    outcome = run(plan, ComputingTools()).outcomes[NodeId("s2")]
    assert outcome.failure is not None
    assert outcome.failure.message == "step 2 is done for each item of a list, not of a number"


def test_a_map_has_a_widest() -> None:
    calls: list[Any] = []

    async def call(_: NodeContext, __: PlanStep, arguments: Any) -> Any:
        calls.append(arguments)

    async def many(_: NodeContext, __: Any) -> list[int]:
        return list(range(11))

    step = PlanStep(2, "add", {"a": Ref("item"), "b": 1}, over=Ref(1))
    node = step_node(step, call, NodeId("s2"), {1: NodeId("s1")}, max_items=10)
    graph = Graph("wide", (Node(NodeId("s1"), many), node))
    outcome = FakeClock().run(Run(graph).wait()).outcomes[NodeId("s2")]
    assert outcome.failure is not None
    assert outcome.failure.error == "BudgetExceeded"
    assert not calls


def test_a_reference_to_no_step_is_an_error_before_anything_runs() -> None:
    with pytest.raises(UnknownReference, match="there is no step 7"):
        graph_of(Plan((PlanStep(1, "add", {"a": Ref(7), "b": 1}),)), ComputingTools())
