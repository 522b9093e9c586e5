"""Schemas of Python types: a server gets them closed, records have them as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

import weft
from tests.serving.openai.scripted import EndpointServer, Script, chunk
from weft.core.calls import ModelCalled
from weft.errors import OutputTruncated
from weft.testing import FakeModel, MemoryJournal, Reply


class Paw(BaseModel):
    side: str = "left"


class Animal(BaseModel):
    name: str
    paws: list[Paw] = []
    counts: dict[str, int] = {}


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


@dataclass
class Point:
    name: str


class Row(TypedDict):
    name: str


def sound(animal: str) -> str:
    """The sound of an animal."""
    return f"{animal} barks"


OPEN = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CLOSED = {**OPEN, "additionalProperties": False}


def sent(
    endpoints: EndpointServer,
    schema: Any,
    text: str = '{"name": "Rex", "tail": "long"}',
    **options: Any,
) -> Any:
    """The schema that a server gets."""
    endpoint = endpoints.add(Script([chunk({"content": text}, "stop", completion_tokens=3)]))
    server = {"use": "openai", "model": "m", "base_url": endpoint.base_url}
    flow = weft.Flow("typed", models={"m": server})
    flow.output(out=flow.model("m", "Describe a dog.", schema=schema, **options))
    result = flow.run_sync()
    assert result.ok, result.reasons
    (request,) = endpoint.requests
    return request["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize("kind", [Point, Row])
def test_a_server_gets_the_schema_of_a_type_closed(endpoints: EndpointServer, kind: Any) -> None:
    assert sent(endpoints, kind) == CLOSED


def test_types_inside_a_type_are_closed_and_mappings_stay_open(endpoints: EndpointServer) -> None:
    schema = sent(endpoints, Animal)
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Paw"]["additionalProperties"] is False
    assert schema["properties"]["counts"]["additionalProperties"] == {"type": "integer"}


def test_a_type_that_allows_more_keys_and_a_json_schema_stay_open(
    endpoints: EndpointServer,
) -> None:
    assert sent(endpoints, Loose)["additionalProperties"] is True
    assert sent(endpoints, OPEN) == OPEN


def test_a_strategy_and_an_agent_close_it_too(endpoints: EndpointServer) -> None:
    assert sent(endpoints, Point, think="direct") == CLOSED
    reply = '{"thought": "a dog", "next": {"answer": {"name": "Rex"}}}'
    schema = sent(endpoints, Point, reply, agent="react", tools=[sound])
    answers = [each["properties"] for each in schema["properties"]["next"]["anyOf"]]
    assert [each["answer"] for each in answers if "answer" in each] == [CLOSED]


def test_an_answer_with_more_keys_is_still_a_value_of_the_type() -> None:
    flow = weft.Flow("typed", models={"m": FakeModel(['{"name": "Rex", "tail": "long"}'])})
    flow.output(out=flow.model("m", "Describe a dog.", schema=Animal))
    assert flow.run_sync().outputs["out"] == Animal(name="Rex")


def test_requests_and_records_have_the_schema_as_it_is() -> None:
    def called(schema: Any) -> Any:
        model, journal = FakeModel(['{"name": "Rex"}']), MemoryJournal()
        flow = weft.Flow("typed", models={"m": model})
        flow.output(out=flow.model("m", "Describe a dog.", schema=schema))
        assert flow.run_sync(journal=journal).ok
        assert model.requests[0].schema == OPEN
        records = [each.record for each in journal.records(journal.runs()[0].run)]
        return [record for record in records if isinstance(record, ModelCalled)]

    typed, plain = called(Point), called(OPEN)
    assert len(typed) == 1
    assert [(c.call, c.request.schema) for c in typed] == [(c.call, OPEN) for c in plain]


@pytest.mark.parametrize(
    ("schema", "named"), [(OPEN, True), (CLOSED, False), (Point, False), (Loose, False)]
)
def test_an_answer_cut_off_in_an_open_schema_names_its_remedy(schema: Any, named: bool) -> None:
    model = FakeModel([Reply('{"name": "Rex", "tail_w": "a b c d e f"}')])
    flow = weft.Flow("typed", models={"m": model})
    flow.output(out=flow.model("m", "Describe a dog.", schema=schema, max_tokens=4))
    (error,) = flow.run_sync().errors.values()
    assert isinstance(error, OutputTruncated)
    assert ("additionalProperties: false" in str(error)) is named
    assert "raise max_tokens" in str(error)
