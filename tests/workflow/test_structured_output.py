"""Structured output: fences and text around JSON, repairs with the error, and what they cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

import weft
from weft.core.values import ToolCall
from weft.errors import OutputTruncated
from weft.events import Event, NodeRepairing
from weft.testing import FakeModel, Reply

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
BOB = {"name": "Bob", "age": 3}
WRITTEN = json.dumps(BOB)
WRONG = '{"name": "Bob", "age": "three"}'


def asking(model: FakeModel, **options: Any) -> weft.Flow:
    flow = weft.Flow("structured", models={"m": model})
    flow.output(bob=flow.model("m", "Who is Bob?", schema=SCHEMA, **options))
    return flow


def answered(*script: str | Reply, **options: Any) -> tuple[Any, FakeModel]:
    model = FakeModel(script)
    flow = asking(model, **options)
    return flow.run_sync(), model


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"```\n{WRITTEN}\n```\n",
        f"Sure! Here it is:\n\n```json\n{WRITTEN}\n```\n\nAnything else?",
        f"The answer is {WRITTEN}.",
        f'It\'s {{a set}}, see [1]: {WRITTEN} (as "asked")',
        f'<think>maybe {{"name": "Al"}}?</think>\n{WRITTEN}',
        f"{WRITTEN}\n{WRITTEN}",
    ],
)
def test_json_is_read_in_fences_and_in_text(text: str) -> None:
    result, model = answered(text)
    assert result.outputs["bob"] == BOB
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        f'{WRITTEN} or {{"name": "Al", "age": 4}}',
        f"{{person: {WRITTEN}}}",
        f'{{"people": [{WRITTEN}, ',
        f"{{'person': {WRITTEN}}}",
        f"[{WRITTEN}]",
        "",
        "no idea",
        "[" * 50_000,
        "{ " * 50_000,
        "```" * 50_000,
    ],
)
def test_a_value_is_never_a_guess(text: str) -> None:
    result, model = answered(text, repair=0)
    assert result.status == "failed"
    assert len(model.requests) == 1


def test_a_misfit_is_repaired_with_the_error() -> None:
    result, model = answered(WRONG, WRITTEN)
    assert result.outputs["bob"] == BOB
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    answer, error = second.messages[len(first.messages) :]
    assert (answer.role, answer.content) == ("assistant", WRONG)
    assert error.role == "user"
    assert '"three" is not of type "integer"' in error.content
    assert json.dumps(SCHEMA) in error.content


class Person(BaseModel):
    name: str
    age: int

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name != "Bob":
            raise ValueError("only Bob is known here")
        return name


def test_the_refusal_of_a_validator_is_repaired_with_its_message() -> None:
    model = FakeModel(['{"name": "Al", "age": 3}', WRITTEN])
    flow = weft.Flow("typed", models={"m": model})
    flow.output(bob=flow.model("m", "Who is Bob?", schema=Person))
    result = flow.run_sync()
    assert result["bob"] == Person(name="Bob", age=3)
    assert len(model.requests) == result.usage.requests == 2
    *_, answer, error = model.requests[1].messages
    assert answer.content == '{"name": "Al", "age": 3}'
    assert "does not fit the schema: name: Value error, only Bob is known here" in error.content
    assert '"required": ["name", "age"]' in error.content


def test_a_validator_that_keeps_refusing_fails_the_node() -> None:
    model = FakeModel(['{"name": "Al", "age": 3}'])
    flow = weft.Flow("typed", models={"m": model})
    flow.output(bob=flow.model("m", "Who is Bob?", schema=Person, repair=2))
    result = flow.run_sync()
    assert "only Bob is known here" in str(result.missing)
    assert len(model.requests) == result.usage.requests == 3


@pytest.mark.parametrize(("repair", "requests"), [(0, 1), (1, 2), (3, 4)])
def test_repairs_are_counted_and_bounded(repair: int, requests: int) -> None:
    model = FakeModel([WRONG])
    events: list[NodeRepairing] = []
    flow = asking(model, repair=repair)

    def listen(event: Event) -> None:
        if isinstance(event, NodeRepairing):
            events.append(event)

    result = flow.run_sync(listeners=[listen])
    assert result.status == "failed"
    assert [event.number for event in events] == list(range(1, 1 + repair))
    assert len(model.requests) == requests == result.usage.requests


def test_the_usage_of_rejected_answers_counts() -> None:
    result, _ = answered(WRONG, WRITTEN)
    first, _ = answered(WRITTEN)
    assert result.usage.requests == 2
    assert result.usage.tokens > 2 * first.usage.tokens


def test_a_token_budget_ends_repairs() -> None:
    model = FakeModel([WRONG])
    result = asking(model, repair=10, budget={"tokens": 40}).run_sync()
    assert result.status == "failed"
    assert len(model.requests) < 5
    assert 40 <= result.usage.tokens < 200


def test_a_cut_off_answer_says_so_and_is_not_repaired() -> None:
    result, model = answered(WRITTEN, max_tokens=2)
    failure = next(iter(result.outcomes.values())).failure
    assert failure is not None
    assert failure.error == OutputTruncated.__name__
    assert "cut off at 2 tokens" in failure.message
    assert len(model.requests) == 1


def test_calls_of_tools_are_repaired_with_the_error_as_their_result() -> None:
    def weather(city: str, days: int) -> str:
        """The weather."""
        return f"{city} {days}"

    def call(**arguments: object) -> Reply:
        return Reply("", (ToolCall("c1", "weather", json.dumps(arguments)),))

    model = FakeModel([call(city="Rome", days="two"), call(city="Rome", days=2)])
    flow = weft.Flow("tools", models={"m": model})
    flow.output(r=flow.model("m", "How is the weather?", tools=[weather]))
    result = flow.run_sync()
    assert result["r"]["tool_calls"] == [
        {"name": "weather", "arguments": {"city": "Rome", "days": 2}}
    ]
    *_, answer, error = model.requests[1].messages
    assert answer.tool_calls[0].id == error.tool_call_id == "c1"
    assert '"two" is not of type "integer"' in error.content
