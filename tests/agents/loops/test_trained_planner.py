"""A model that was trained as a planner is asked in its own short form, and concludes in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weft
from weft.agents.agent import AgentOptions, Answer
from weft.core.errors import AgentError
from weft.core.ports import Capabilities
from weft.planner.compact import COMPACT, compact_messages, conclusion_messages
from weft.testing import FakeModel

TRAINED = Capabilities(structured_output=True, plan_form=COMPACT)


@weft.tool(pure=True)
def price(item: str) -> int:
    """The price of an item."""
    if item == "air":
        raise ValueError("it is free")
    return {"tea": 3, "milk": 2}[item]


def answered(model: FakeModel, **options: Any) -> Answer:
    made = weft.ask("Tea or milk?", tools=[price], model=model, options=AgentOptions(**options))
    return asyncio.run(made)


def test_it_plans_and_concludes_in_two_short_requests() -> None:
    model = FakeModel(
        ['1. price(item="tea")\n2. price(item="milk")\n3. join()', "Milk is cheaper."],
        capabilities=TRAINED,
    )
    answer = answered(model)
    assert answer.value == "Milk is cheaper."
    plan, conclusion = model.requests
    (spec,) = [price.spec]
    assert plan.messages == compact_messages("Tea or milk?", [spec])
    results = ['1. price(item="tea") -> 3', '2. price(item="milk") -> 2']
    assert conclusion.messages == conclusion_messages("Tea or milk?", results)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("1. join()", "No tool that is offered fits the question."),
        ("# missing: item\n1. join()", "The question leaves out: item."),
    ],
)
def test_where_nothing_can_be_called_the_person_is_told(plan: str, said: str) -> None:
    model = FakeModel([plan], capabilities=TRAINED)
    answer = answered(model)
    assert answer.value == said
    assert answer.calls == ()
    assert len(model.requests) == 1


def test_an_answer_with_a_schema_is_asked_for_as_of_any_model() -> None:
    reply = {"thought": "", "next": {"answer": 2}}
    model = FakeModel(['1. price(item="milk")\n2. join()', reply], capabilities=TRAINED)
    assert answered(model, schema={"type": "integer"}).value == 2


def test_an_empty_conclusion_is_an_error() -> None:
    model = FakeModel(['1. price(item="milk")\n2. join()', " "], capabilities=TRAINED)
    with pytest.raises(AgentError, match="empty text"):
        answered(model)


def test_calls_that_all_fail_are_planned_again() -> None:
    script = [
        '1. price(item="air")\n2. join()',
        {"thought": "", "next": {"replan": "the price of milk"}},
        '2. price(item="milk")\n3. join()',
        "Milk costs 2.",
    ]
    model = FakeModel(script, capabilities=TRAINED)
    assert answered(model).value == "Milk costs 2."
    assert "So far:" in model.requests[2].messages[-1].content
