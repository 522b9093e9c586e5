"""One model call as a node: what it is told of its run, what becomes of failures and budgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from tests.agents.loops.scripted_agent import CAPABLE, PRICES, call, price, says, talk
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.loops import check_options, make_agent
from weft.core.budget import Budget
from weft.core.errors import (
    BuildError,
    ModelOutputError,
    ModelRequestError,
    ModelUnavailable,
)
from weft.core.events import NodeRetrying
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta
from weft.core.values import ToolCall
from weft.engine import BudgetLimit, RunOptions
from weft.testing import FakeClock, FakeModel, FakeTools, Reply

TEA = says(call=call("price", item="tea"))
CHEAPER = says(answer="tea")
LOOPS = ["react", "divide", "parallel-react"]


def test_a_stream_that_breaks_is_asked_again() -> None:
    talked = talk("react", [Reply(CHEAPER, break_after_tokens=1), CHEAPER])
    assert talked.answer.value == "tea"
    assert [e.node for e in talked.events if isinstance(e, NodeRetrying)] == ["react/turn1"]
    assert talked.result.status == "succeeded"


@pytest.mark.parametrize("agent", LOOPS)
def test_a_model_that_is_not_there_ends_it_with_its_name(agent: str) -> None:
    talked = talk(agent, [Reply(error=ModelUnavailable("nobody listens"))])
    assert "AgentError: fake gave no answer: ModelUnavailable: nobody listens" in talked.reason
    assert len(talked.requests) == 3


def test_a_request_that_is_refused_is_not_repeated() -> None:
    talked = talk("parallel-react", [Reply(error=ModelRequestError("too long"))])
    assert "ModelRequestError: too long" in talked.reason
    assert len(talked.requests) == 1


def test_a_schema_that_cannot_be_enforced_is_left_out_and_that_is_said() -> None:
    def script(request: ModelRequest) -> Reply | str:
        if request.schema is not None:
            return Reply(error=ModelRequestError("the schema cannot be enforced: minContains"))
        return CHEAPER

    talked = talk("react", script)
    assert talked.answer.value == "tea"
    assert [request.schema is None for request in talked.requests] == [False, True]
    assert any("asked again without a schema" in line for line in talked.logs)


class Strict(FakeModel):
    """Refuses, as real clients do, to hand out what does not fit the schema."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        yield TextDelta('{"thought": "x", "ne')
        if len(self.requests) < 2:
            raise ModelOutputError("the output is not JSON")
        async for event in super().generate(request):
            yield event


def test_output_that_the_client_refuses_is_read_and_told_here() -> None:
    model = Strict([CHEAPER])

    async def main() -> None:
        end = await run_agent(make_agent("react", FakeTools(), model), "which?")
        assert end.value() == "tea"
        assert end.result.status == "succeeded"
        assert end.result.usage.requests == 2

    FakeClock().run(main())
    assert "it is not JSON" in model.requests[1].messages[-1].content
    assert model.requests[1].messages[-2].content == '{"thought": "x", "ne'


def test_output_that_the_client_refuses_because_it_was_cut_off_is_told_so() -> None:
    model = Strict([CHEAPER])

    async def main() -> None:
        agent = make_agent("react", FakeTools(), model, AgentOptions(max_tokens=1))
        assert (await run_agent(agent, "which?")).answer is None

    FakeClock().run(main())
    assert "it was cut off after 1 tokens" in model.requests[1].messages[-1].content


class Garbled(FakeModel):
    """Breaks off what would be an answer."""

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        yield TextDelta("Answer: tea")
        raise ModelOutputError("garbled")


@pytest.mark.parametrize("agent", LOOPS)
def test_half_of_an_answer_is_never_taken_for_one(agent: str) -> None:
    model = Garbled([""])

    async def main() -> None:
        made = make_agent(agent, FakeTools(), model, AgentOptions(constrain="never"))
        end = await run_agent(made, "which?")
        assert end.answer is None
        assert "ModelOutputError: garbled" in end.result.reasons[-1]

    FakeClock().run(main())
    assert len(model.requests) == 3


@pytest.mark.parametrize("agent", LOOPS)
def test_one_agent_works_on_many_questions_at_once(agent: str) -> None:
    def script(request: ModelRequest) -> Reply:
        question = request.messages[1].content.removeprefix("Question: ")
        if len(request.messages) > 2:
            return Reply(says(answer=f"about {question}"), per_token_s=0.1)
        asked = call("price", item=question)
        native = ToolCall("c1", "price", f'{{"item": "{question}"}}')
        if agent == "parallel-react":
            return Reply("", (native,))
        return Reply(says(call=asked) if agent == "react" else says(calls=[asked]))

    async def main() -> None:
        made = make_agent(agent, FakeTools(price=price), FakeModel(script))
        async with asyncio.TaskGroup() as group:
            runs = {q: group.create_task(run_agent(made, q)) for q in PRICES}
        for question, run in runs.items():
            answer = run.result().answer
            assert answer is not None
            assert f"about {question}" in answer.value
            assert [o.outcome.value for o in answer.calls] == [PRICES[question]]

    FakeClock().run(main())


class Started(FakeModel):
    """Has to be started first."""

    started = False

    async def start(self, show: Callable[[str], None] | None = None) -> None:
        assert show is not None
        show("loading")
        self.started = True

    async def capabilities(self) -> Capabilities:
        assert self.started
        return CAPABLE


@pytest.mark.parametrize("agent", LOOPS)
def test_a_model_that_must_be_started_is(agent: str) -> None:
    model = Started([CHEAPER])

    async def main() -> None:
        end = await run_agent(make_agent(agent, FakeTools(), model), "which?")
        assert end.answer is not None

    FakeClock().run(main())


def test_a_call_knows_its_run() -> None:
    options = RunOptions(deadline_s=50.0, limit=BudgetLimit(Budget(tokens=1_000)))
    talked = talk("react", [TEA, CHEAPER], run=options, temperature=0.5)
    first, second = talked.requests
    assert first.program is not None
    assert first.program.id == talked.result.run
    assert first.priority > 0
    assert first.timeout_s == 51.0
    assert first.sampling.temperature == 0.5
    assert first.sampling.max_tokens is not None
    assert second.sampling.max_tokens is not None
    assert 1_000 >= first.sampling.max_tokens > second.sampling.max_tokens


@pytest.mark.parametrize("agent", LOOPS)
def test_a_budget_that_is_spent_stops_it(agent: str) -> None:
    options = RunOptions(limit=BudgetLimit(Budget(tokens=10)))
    talked = talk(agent, [TEA, TEA, CHEAPER], run=options)
    assert len(talked.requests) == 1
    assert "10 tokens spent" in talked.reason
    assert talked.result.status == "partial"


def test_a_budget_that_degrades_is_an_agent_error() -> None:
    options = RunOptions(limit=BudgetLimit(Budget(tokens=10), "degrade"))
    talked = talk("react", [TEA, CHEAPER], run=options)
    assert len(talked.requests) == 1
    assert "AgentError: fake gave no answer: BudgetExceeded" in talked.reason
    assert "give it a larger budget" in talked.reason


def test_one_slot_is_enough() -> None:
    options = RunOptions(max_concurrency=1, limits={"fake": 1})
    talked = talk("divide", [says(calls=[call("price", item="tea")] * 3), CHEAPER], run=options)
    assert talked.answer.value == "tea"


@pytest.mark.parametrize("agent", LOOPS)
def test_a_schema_that_is_none_is_refused_before_anything_runs(agent: str) -> None:
    options = AgentOptions(schema={"type": "object", "properties": 3})
    with pytest.raises(BuildError, match="the answer's schema is wrong"):
        make_agent(agent, FakeTools(), FakeModel([""]), options)
    with pytest.raises(BuildError, match="the answer's schema is wrong"):
        check_options(agent, options)
    check_options(agent, AgentOptions(schema={"type": "object"}))
