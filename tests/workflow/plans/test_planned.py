"""A plan, a workflow file and a drawing are views of one graph: nothing is lost between them."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.agents.loops.agent_run import ContentWhenDone, ScriptedModel, play_agent
from tests.agents.loops.test_replanning import CASES, Replanner
from tests.planner.plan_graph import JOIN, graph_of
from tests.planner.runnable import ComputingTools, evaluate, plans, random_plan
from tests.planner.strategies import plans as any_plans_over
from tests.planner.strategies import registries
from tests.profile import examples
from weft.agents.agent import AgentOptions, merge_plans
from weft.agents.loops.compiler import CompilerAgent
from weft.core.errors import BuildError
from weft.planner.plan import Plan, PlanStep, Ref, StepCondition
from weft.testing import FakeClock, FakeModel
from weft.workflow.plans import flow_of, plan_of

TOOLS = {name: f"./tools.py:{name}" for name in ("add", "spread", "label")}
ADD = PlanStep(1, "add", {"a": 1, "b": 2})


def canonical(plan: Plan) -> Plan:
    """The plan as a workflow keeps it: see `flow_of`."""
    results = tuple(dict.fromkeys(plan.results))
    everything = tuple(Ref(step.number) for step in plan.steps)
    steps = tuple(
        replace(step, after=tuple(n for n in step.after if n not in step.sources))
        for step in plan.steps
    )
    return Plan(steps, () if results == everything else results)


def through_a_file(plan: Plan, **settings: Any) -> Plan:
    flow = flow_of(plan, TOOLS, **settings)
    again = weft.loads(flow.to_yaml())
    assert again.document == flow.document
    return plan_of(again)


@examples(100)
@given(plans(), st.sampled_from([None, "local:small"]), st.sampled_from(["", "tea", "$3"]))
def test_a_plan_goes_through_a_file(plan: Plan, model: str | None, question: str) -> None:
    assert through_a_file(plan, model=model, question=question) == canonical(plan)


@examples(100)
@given(st.data(), st.sampled_from([None, "local:small"]))
def test_whatever_stands_in_a_plan_goes_through_a_file(
    data: st.DataObject, model: str | None
) -> None:
    tools = data.draw(registries())
    plan = data.draw(any_plans_over(tools))
    if not plan.steps:
        return
    called = {tool.name: f"tool{number}" for number, tool in enumerate(tools)}
    section = {name: f"./tools.py:{name}" for name in called.values()}
    flow = flow_of(plan, section, called=called, model=model)
    found = plan_of(weft.loads(flow.to_yaml()))
    named = tuple(replace(step, tool=called[step.tool]) for step in plan.steps)
    assert found == canonical(replace(plan, steps=named))


@examples(60)
@given(plans(ordered=True), st.integers(0, 99))
def test_the_workflow_does_what_the_plan_does(plan: Plan, seed: int) -> None:
    clock = FakeClock()
    flow = flow_of(plan, TOOLS)
    run = flow.start(tools=ComputingTools(seed), clock=clock)
    result = clock.run(run.wait())
    expected = evaluate(plan)
    values = {
        int(node[1:]): outcome.value
        for node, outcome in result.outcomes.items()
        if re.fullmatch(r"s\d+", node) and outcome.ok
    }
    assert values == expected.values
    assert result.status == "succeeded"


@examples(60)
@given(plans())
def test_plan_workflow_and_drawing_have_the_same_edges(plan: Plan) -> None:
    needs = {(f"s{need}", f"s{step.number}") for step in plan.steps for need in step.needs}
    flow = flow_of(plan, TOOLS)
    graph = graph_of(plan, ComputingTools())
    engine = {(str(s), str(n.id)) for n in graph.infos for s in n.sources if n.id != JOIN}
    view = {(edge.source, edge.target) for edge in flow.graph_view().edges}
    drawn = set(re.findall(r"^    n_(s\d+) -.*?> n_(s\d+)$", flow.mermaid(), re.MULTILINE))
    assert engine == view == drawn == needs


@pytest.mark.parametrize("number", range(10))
def test_what_an_agent_found_out_with_failures_is_a_workflow_without(number: int) -> None:
    plan, broken = CASES[number]
    model = ScriptedModel(reply=Replanner(plan, broken, whole=number % 2 == 0))
    options = AgentOptions(rounds=9, calls=500)
    tools = ComputingTools(number, broken)
    answer = play_agent(CompilerAgent(tools, model, options, joiner=ContentWhenDone())).answer
    flow = weft.loads(flow_of(merge_plans(answer), TOOLS, question="What?").to_yaml())
    result = run(flow, tools=ComputingTools(number))
    assert result.status == "succeeded"
    expected = evaluate(plan).values.values()
    assert Counter(map(repr, result.outputs.values())) == Counter(map(repr, expected))


# -- one by one -----------------------------------------------------------------------------------


def run(flow: weft.Flow, inputs: dict[str, Any] | None = None, **settings: Any) -> Any:
    clock = FakeClock()
    return clock.run(flow.start(inputs, clock=clock, **settings).wait())


def test_the_question_becomes_an_input_where_it_is_an_argument() -> None:
    label = PlanStep(1, "label", {"text": "What?", "of": ("What? And", {"q": "What?"})})
    flow = flow_of(Plan((label,)), TOOLS, question="What?")
    assert flow.inputs["question"].default == "What?"
    result = run(flow, {"question": "why"}, tools=ComputingTools())
    assert result.outputs["answer"] == {"text": "WHY", "of": ["What? And", {"q": "why"}]}
    assert plan_of(flow).steps == (label,)
    assert plan_of(flow, {"question": "why"}).steps[0].arguments["text"] == "why"


def test_without_such_an_argument_there_is_no_input() -> None:
    flow = flow_of(Plan((ADD,)), TOOLS, question="What?")
    assert not flow.inputs
    assert flow.description == "What?"


def test_a_model_answers_from_the_results() -> None:
    plan = Plan((ADD, PlanStep(2, "add", {"a": Ref(1, ("sum",)), "b": 1})), (Ref(2, ("sum",)),))
    schema = {"type": "integer"}
    flow = flow_of(plan, TOOLS, question="How {{ many }}?", model="local:small", schema=schema)
    model = FakeModel(["4"])
    result = run(flow, tools=ComputingTools(), models={"model": model})
    assert result.outputs == {"answer": 4}
    asked = model.requests[0].messages[-1].content
    assert asked == "Question: How {{ many }}?\n\nResults:\n2. add(a=$1.sum, b=1) -> 4"


def test_what_a_condition_left_out_is_left_out_of_the_answer() -> None:
    never = PlanStep(2, "add", {"a": 5, "b": 5}, when=StepCondition(Ref(1, ("sum",)), ">", 3))
    plan = Plan((ADD, never), (Ref(1, ("sum",)), Ref(2, ("sum",))))
    flow = flow_of(plan, TOOLS, model="local:small")
    model = FakeModel(["done"])
    result = run(flow, tools=ComputingTools(), models={"model": model})
    assert result.outputs == {"answer": "done"}
    assert model.requests[0].messages[-1].content.endswith("Results:\n[3]")
    outputs = run(flow_of(plan, TOOLS), tools=ComputingTools())
    assert outputs.outputs == {"result1": 3}
    assert outputs.status == "succeeded"


def test_a_failure_is_no_reason_to_answer_without_it() -> None:
    never = PlanStep(2, "add", {"a": 5, "b": 5}, when=StepCondition(Ref(1, ("sum",)), "==", 3))
    plan = Plan((ADD, never), (Ref(1, ("sum",)), Ref(2, ("sum",))))
    model = FakeModel(["done"])
    tools = ComputingTools(failing={'["add", {"a": 5, "b": 5}]': 1})
    result = run(flow_of(plan, TOOLS, model="local:small"), tools=tools, models={"model": model})
    assert result.status == "failed"
    assert not model.requests


def test_a_plan_that_needs_no_tool_is_a_question_to_the_model() -> None:
    flow = flow_of(Plan(), {}, question="What?", model="local:small")
    assert run(flow, models={"model": FakeModel(["tea"])}).outputs == {"answer": "tea"}
    assert plan_of(flow) == Plan()
    with pytest.raises(BuildError, match="nothing to freeze"):
        flow_of(Plan(), {})


def test_a_tool_must_be_declared() -> None:
    with pytest.raises(BuildError, match=r"the tool 'add' of step 1 is not declared"):
        flow_of(Plan((ADD,)), {"label": "./tools.py:label"})


def test_tools_of_a_source_are_declared_by_their_source() -> None:
    step = PlanStep(1, "files_read", {"path": "a"})
    flow = flow_of(Plan((step,)), {"files": "./tools.py:files"}, called={"files_read": "files"})
    assert plan_of(flow).steps[0].tool == "files"


def test_nodes_of_any_name_get_numbers_in_order() -> None:
    flow = weft.loads(
        """
name: brief
inputs: {limit: {type: integer, default: 2}}
tools: {add: "./tools.py:add", spread: "./tools.py:spread"}
nodes:
  total: {map: "{{ numbers }}", as: number, do: {tool: add, with: {a: "{{ number }}", b: 1}}}
  numbers: {tool: spread, with: {n: "{{ limit }}"}}
outputs: {total: "{{ total[-1].sum }}"}
"""
    )
    assert plan_of(flow, {"limit": 3}) == Plan(
        (
            PlanStep(1, "spread", {"n": 3}),
            PlanStep(2, "add", {"a": Ref("item"), "b": 1}, over=Ref(1)),
        ),
        (Ref(2, (-1, "sum")),),
    )


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{value: 1}", "b: a plan has no value nodes"),
        ("{tool: add, with: {a: 1, b: 1}, retry: 3}", "b: a plan cannot say `retry`"),
        (
            '{map: "{{ a.parts }}", do: {tool: add, with: {a: 1, b: 1}, after: a}}',
            "b: a plan has no order of an item",
        ),
        ('{tool: add, with: {a: "{{ a.sum + 1 }}", b: 1}}', "b: a plan cannot compute"),
        ('{tool: add, with: {a: 1, b: 1}, when: "{{ a.sum + 1 }}"}', "b: a plan cannot ask"),
        ('{map: "{{ a.parts }}", do: {value: 1}}', "b: a plan has no map nodes like this"),
        (
            '{map: "{{ a.parts }}", do: {tool: add, with: {a: 1, b: 1}, when: "{{ item }}"}}',
            "b: a plan has no condition on an item",
        ),
        ("{map: [1, 2], do: {tool: add, with: {a: 1, b: 1}}}", "b: a plan refers to a result here"),
    ],
)
def test_what_a_plan_cannot_say_is_refused_by_name(node: str, said: str) -> None:
    flow = weft.loads(
        f"""
name: brief
tools: {{add: "./tools.py:add"}}
nodes:
  a: {{tool: add, with: {{a: 1, b: 1}}}}
  b: {node}
outputs: {{b: "{{{{ b }}}}"}}
"""
    )
    with pytest.raises(BuildError, match=re.escape(said)):
        plan_of(flow)


def test_a_model_in_the_middle_is_refused() -> None:
    flow = weft.loads(
        """
name: brief
models: {small: "local:small"}
tools: {label: "./tools.py:label"}
nodes:
  a: {model: small, prompt: "Say something."}
  b: {tool: label, with: {text: "{{ a }}", of: 1}}
outputs: {b: "{{ b }}"}
"""
    )
    with pytest.raises(BuildError, match="b: a plan cannot use `a`: it is no call of a tool"):
        plan_of(flow)


def test_an_input_without_a_value_is_refused() -> None:
    flow = weft.loads(
        """
name: brief
inputs: {limit: integer}
tools: {spread: "./tools.py:spread"}
nodes: {numbers: {tool: spread, with: {n: "{{ limit }}"}}}
outputs: {numbers: "{{ numbers }}"}
"""
    )
    with pytest.raises(BuildError, match="the input `limit` has no value"):
        plan_of(flow)


def test_the_random_plans_have_everything() -> None:
    found = [step for seed in range(50) for step in random_plan(random.Random(seed)).steps]
    assert any(step.over for step in found)
    assert any(step.when for step in found)
    assert any(step.over and step.when for step in found)
