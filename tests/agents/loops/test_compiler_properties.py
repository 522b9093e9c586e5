"""The compiler agent against an oracle, under shuffled completions, cancellation and budgets."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.loops.agent_run import (
    ContentWhenDone,
    Pause,
    ScriptedModel,
    cancel_agent,
    play_agent,
)
from tests.planner.runnable import ComputingTools, call_key, evaluate, plans
from weft.agents.agent import AgentOptions, Answer
from weft.agents.loops.compiler import CompilerAgent
from weft.core.budget import Budget
from weft.core.events import NodeFinished, NodeStarted
from weft.engine import BudgetLimit
from weft.planner.plan import Plan
from weft.planner.text.writer import write


def compiler(plan: Plan, tools: ComputingTools, seed: int = 0, **options: Any) -> CompilerAgent:
    model = ScriptedModel(paced(plan, seed))
    return CompilerAgent(tools, model, AgentOptions(**options), joiner=ContentWhenDone())


def paced(plan: Plan, seed: int) -> list[Pause]:
    """The text of `plan`, cut anywhere, each piece after a pause."""
    chance = random.Random(seed)
    text, pieces = write(plan), []
    while text:
        cut = chance.randint(1, 30)
        pieces.append((chance.choice((0.0, 0.0, 0.1, 1.0)), text[:cut]))
        text = text[cut:]
    return pieces


def said(answer: Answer) -> list[tuple[int, str, object]]:
    """The calls that succeeded."""
    return [
        (one.number, call_key(one.tool, one.arguments), one.outcome.value)
        for one in answer.calls
        if one.outcome.ok
    ]


@given(plans(), st.integers(0, 1000))
def test_an_answer_is_what_plain_python_comes_to(plan: Plan, seed: int) -> None:
    tools = ComputingTools(seed)
    played = play_agent(compiler(plan, tools, seed, calls=500))
    expected = evaluate(plan)
    assert sorted(tools.calls) == sorted(expected.calls)
    values = {number: outcome.value for number, outcome in played.steps.items() if outcome.ok}
    assert values == expected.values
    assert played.answer.rounds == 1
    assert played.answer.plans == (plan,)


@given(plans(most=6))
@settings(max_examples=10)
def test_a_hundred_orders_of_completion_give_one_answer(plan: Plan) -> None:
    answers = [play_agent(compiler(plan, ComputingTools(seed), seed)).answer for seed in range(100)]
    assert all(answer.value == answers[0].value for answer in answers)
    assert all(said(answer) == said(answers[0]) for answer in answers)


@given(plans(), st.integers(0, 1000), st.floats(0, 10))
def test_cancelling_leaves_nothing_running(plan: Plan, seed: int, after_s: float) -> None:
    tools, model = ComputingTools(seed), ScriptedModel(paced(plan, seed))
    events = cancel_agent(CompilerAgent(tools, model, joiner=ContentWhenDone()), after_s)
    assert tools.running == model.open == 0
    started = {event.node for event in events if isinstance(event, NodeStarted)}
    assert started <= {event.node for event in events if isinstance(event, NodeFinished)}


@given(plans(), st.integers(0, 100), st.integers(0, 6), st.integers(1, 3), st.data())
def test_budgets_hold(plan: Plan, seed: int, calls: int, rounds: int, data: st.DataObject) -> None:
    keys = sorted(set(evaluate(plan).calls))
    broken = data.draw(st.lists(st.sampled_from(keys), max_size=2)) if keys else []
    tools = ComputingTools(seed, dict.fromkeys(broken, 9))
    tokens = data.draw(st.none() | st.integers(1, 400))
    agent = compiler(plan, tools, seed, calls=calls, rounds=rounds)
    limit = None if tokens is None else BudgetLimit(Budget(tokens=tokens))
    deadline_s = data.draw(st.none() | st.floats(0.05, 20))
    played = play_agent(agent, limit=limit, deadline_s=deadline_s)
    assert len(tools.calls) <= calls
    model = agent.model
    assert isinstance(model, ScriptedModel)
    assert len(model.requests) <= 2 * rounds  # each plan may be mended once
    if deadline_s is not None:
        assert played.result.result.wall_s <= deadline_s + 1e-6
    if tokens is not None:
        for request in model.requests:
            assert (request.sampling.max_tokens or 0) <= tokens
    assert tools.running == model.open == 0
