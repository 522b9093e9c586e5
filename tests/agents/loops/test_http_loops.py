"""The loops over HTTP: what a server with tool calls of its own is really sent."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.agents.loops.scripted_agent import call, price, says
from tests.serving.openai.scripted import EndpointServer, plays
from weft.agents.agent import AgentOptions, Answer, run_agent
from weft.agents.loops import make_agent
from weft.core.values import ToolCall
from weft.serving.openai import OpenAIModel
from weft.testing import FakeTools, Reply

BEST = {
    "type": "object",
    "properties": {"best": {"type": "string"}},
    "required": ["best"],
    "additionalProperties": False,
}
Json = dict[str, Any]


def answered(
    endpoints: EndpointServer, agent: str, script: list[Reply], **options: Any
) -> tuple[Answer, list[Json]]:
    replies = iter(script)
    endpoint = endpoints.add(lambda request: plays(next(replies), request))

    async def main() -> Answer:
        async with aclosing(OpenAIModel(endpoint.base_url, "m")) as model:
            made = make_agent(agent, FakeTools(price=price), model, AgentOptions(**options))
            end = await run_agent(made, "which is cheaper?")
        assert end.answer is not None, end.result.reasons
        return end.answer

    return asyncio.run(main()), endpoint.requests


def test_native_tool_calls_there_and_back(endpoints: EndpointServer) -> None:
    calls = (
        ToolCall("c1", "price", '{"item": "tea"}'),
        ToolCall("c2", "price", '{"item": "gold"}'),
        ToolCall("c3", "price", '{"item": '),
    )
    script = [Reply("", calls), Reply("The tea."), Reply('{"best": "tea"}')]
    answer, requests = answered(endpoints, "parallel-react", script, schema=BEST)
    assert answer.value == {"best": "tea"}
    first, second, third = requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["price"]
    asked, *told = second["messages"][2:]
    assert [call["function"]["arguments"] for call in asked["tool_calls"]] == [
        '{"item": "tea"}',
        '{"item": "gold"}',
        "{}",
    ]
    assert [(message["role"], message["tool_call_id"]) for message in told] == [
        ("tool", "c1"),
        ("tool", "c2"),
        ("tool", "c3"),
    ]
    assert told[0]["content"] == "3"
    assert told[1]["content"].startswith("failed: ToolRaised")
    assert [request["tool_choice"] for request in requests] == ["auto", "auto", "none"]
    assert "response_format" not in second
    assert third["response_format"]["json_schema"]["schema"] == BEST
    assert third["tools"] == first["tools"]
    assert third["messages"][: len(second["messages"])] == second["messages"]


@pytest.mark.parametrize("agent", ["react", "divide"])
def test_replies_are_asked_for_with_a_schema(endpoints: EndpointServer, agent: str) -> None:
    tea = call("price", item="tea")
    wanted = says(call=tea) if agent == "react" else says(calls=[tea])
    answer, requests = answered(endpoints, agent, [Reply(wanted), Reply(says(answer="tea"))])
    assert answer.value == "tea"
    assert [request["response_format"]["type"] for request in requests] == ["json_schema"] * 2
    assert requests[1]["messages"][-1]["content"] == (
        'Results of the calls:\n1. price(item="tea") -> 3'
    )


def test_output_that_the_client_refuses_is_told_to_the_model(endpoints: EndpointServer) -> None:
    script = [Reply('{"thought": "x'), Reply(says(answer="tea"))]
    answer, requests = answered(endpoints, "react", script)
    assert answer.value == "tea"
    assert requests[1]["messages"][-2]["content"] == '{"thought": "x'
    assert "it is not JSON" in requests[1]["messages"][-1]["content"]
