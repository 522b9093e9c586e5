"""What a server counts is what a run reports and its budgets are charged, however answers end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.serving.openai.scripted import EndpointServer, Script, chunk, usage
from weft import Flow, tool
from weft.core.events import Event, NodeSpent, RunFinished
from weft.core.ports import ModelEvent, ModelRequest, Prefilled, Sampling, TextDelta, UsageMeter
from weft.core.values import Completion, Message, Usage
from weft.testing import FakeModel, Reply
from weft.workflow import FlowResult

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def said(*texts: str, finish: str = "stop") -> Script:
    """An answer of 100 prompt and 10 completion tokens."""
    return Script(
        [*(chunk({"content": text}) for text in texts), chunk({}, finish), usage(100, 10)]
    )


def run(flow: Flow, **settings: Any) -> FlowResult:
    return flow.run_sync(**settings)


def model(base_url: str) -> dict[str, Any]:
    price = {"prompt": 10.0, "completion": 100.0}
    return {"use": "openai", "model": "m", "base_url": base_url, "options": {"price": price}}


def test_answers_that_do_not_fit_their_schema_are_paid_for(endpoints: EndpointServer) -> None:
    answers = iter(['{"x": "no"}', "{", '{"x": 4}'])
    endpoint = endpoints.add(lambda _: said(next(answers)))
    flow = Flow("f", models={"m": model(endpoint.base_url)})
    flow.output(r=flow.model("m", "hi", schema=SCHEMA, retry={"attempts": 3, "delay": 0}))
    result = run(flow)
    assert result.outputs == {"r": {"x": 4}}
    assert result.usage == Usage(300, 30, requests=3, money=pytest.approx(0.006))


@pytest.mark.parametrize(("repair", "attempts"), [(5, 1), (2, 2), (0, 6)])
def test_six_rejected_answers_are_no_zero_tokens(
    endpoints: EndpointServer, repair: int, attempts: int
) -> None:
    endpoint = endpoints.add(said('{"x": "no"}'))
    flow = Flow("f", models={"m": model(endpoint.base_url)})
    retry = {"attempts": attempts, "delay": 0}
    flow.output(r=flow.model("m", "hi", schema=SCHEMA, repair=repair, retry=retry))
    spent: list[Usage] = []
    result = run(
        flow, listeners=[lambda e: spent.append(e.usage) if isinstance(e, NodeSpent) else None]
    )
    assert result.status == "failed"
    assert len([each for each in endpoint.requests if "messages" in each]) == 6
    assert result.usage == Usage(600, 60, requests=6, money=pytest.approx(0.012))
    assert sum(each.tokens for each in spent) == 660


def test_notes_that_are_no_notes_are_paid_for(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(lambda asked: said("40 metres."))
    flow = Flow("f", models={"m": model(endpoint.base_url)})
    documents = ["The tower is 40 metres high.", "It is old."]
    think = {"strategy": "map-reduce", "documents": documents}
    flow.output(r=flow.model("m", "How high?", think=think))
    result = run(flow)
    assert result.usage == Usage(
        100 * len(endpoint.requests),
        10 * len(endpoint.requests),
        requests=len(endpoint.requests),
        money=pytest.approx(0.002 * len(endpoint.requests)),
    )


def test_a_budget_is_charged_for_answers_that_cannot_be_used(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(said("no"))
    flow = Flow("f", models={"m": model(endpoint.base_url)}, budget={"tokens": 250})
    flow.output(r=flow.model("m", "hi", schema=SCHEMA, retry={"attempts": 9, "delay": 0}))
    result = run(flow)
    assert result.status != "succeeded"
    assert result.usage.tokens == 330
    assert len(endpoint.requests) == 3


@tool(pure=True)
def height(of: str) -> int:
    """How high it is."""
    return 40


def test_plans_that_are_ended_early_are_paid_for(endpoints: EndpointServer) -> None:
    def answer(asked: dict[str, Any]) -> Script:
        if "response_format" in asked:
            return said(json.dumps({"thought": "t", "decision": "finish", "answer": "40"}))
        return said('1. height(of="tower")\n2. join()\n', "And then I would say\n", "that it is")

    endpoint = endpoints.add(answer, model={"owned_by": "somebody"})
    flow = Flow("f", models={"m": model(endpoint.base_url)}, tools={"height": height})
    flow.output(r=flow.model("m", "How high?", tools=["height"], agent="compiler"))
    result = run(flow)
    asked = len(endpoint.requests)
    assert asked >= 2
    assert result.usage.requests == asked
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (100 * asked, 10 * asked)


class _Silent(FakeModel):
    """Says what the prompt had, if `told`, and then goes on for ever."""

    def __init__(self, told: int) -> None:
        super().__init__([""])
        self.told = told

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self.told:
            yield Prefilled(tuple(range(self.told)))
        yield TextDelta("a b c", (1, 2, 3))
        await asyncio.Event().wait()


@pytest.mark.parametrize(("told", "prompt"), [(70, 70), (0, 10)])
def test_a_call_that_is_cut_by_its_timeout_counts_prompt_and_tokens(told: int, prompt: int) -> None:
    flow = Flow("f", models={"m": _Silent(told)})
    flow.output(r=flow.model("m", "x" * 40, timeout=0.05, on_failure="skip"))
    result = run(flow)
    assert result.usage == Usage(prompt, 3, requests=1)


def test_the_losers_of_a_join_are_paid_for() -> None:
    flow = Flow("f", models={"m": _Silent(70), "n": FakeModel([Reply("yes", first_token_s=0.05)])})
    slow, fast = flow.model("m", "hello"), flow.model("n", "hello")
    flow.output(r=flow.join(slow, fast, mode="any"))
    result = run(flow)
    assert result.outputs == {"r": "yes"}
    assert result.usage == Usage(71, 4, requests=2, forwards=1)


def test_a_call_that_the_deadline_cuts_is_counted_before_the_run_has_ended() -> None:
    heard: list[Event] = []
    flow = Flow("f", models={"m": _Silent(70)})
    flow.output(r=flow.model("m", "hello"))
    result = run(flow, deadline=0.05, listeners=[heard.append])
    assert result.usage == Usage(70, 3, requests=1)
    assert isinstance(heard[-1], RunFinished)
    assert any(isinstance(event, NodeSpent) for event in heard)


def test_a_failed_call_costs_the_same_when_it_is_replayed(endpoints: EndpointServer) -> None:
    from weft.testing import MemoryJournal
    from weft.workflow.history.replay import replay
    from weft.workflow.history.run_history import read_history

    endpoint = endpoints.add(said("no"))
    flow = Flow("f", models={"m": model(endpoint.base_url)}, budget={"tokens": 250})
    flow.output(r=flow.model("m", "hi", schema=SCHEMA, retry={"attempts": 9, "delay": 0}))
    journal = MemoryJournal()
    result = flow.run_sync(journal=journal)
    found = replay(read_history(journal, result.run), flow.unit)
    assert found.ok
    assert found.result.usage == result.usage


def test_a_meter_believes_the_model_before_it_counts() -> None:
    meter = UsageMeter(ModelRequest((Message("user", "x" * 8),), sampling=Sampling(5)))
    assert meter.usage == Usage(requests=1)
    meter.take(TextDelta("a"))
    assert meter.estimated
    assert meter.usage == Usage(2, 1, requests=1)
    meter.take(Completion("a", usage=Usage(9, 9, requests=1)))
    assert not meter.estimated
    assert meter.usage == Usage(9, 9, requests=1)
