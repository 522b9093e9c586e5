"""Agents with a model whose thought is longer than an answer may be."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.main import app
from weft.errors import AgentError
from weft.testing import FakeModel, Reply
from weft.workflow.runtime.models.factory import Models


@weft.tool
def now() -> str:
    """The time of day."""
    return "noon"


def thinker() -> FakeModel:
    return FakeModel(lambda _: Reply("It is noon.", reasoning=" hm" * 3_000))


@pytest.mark.parametrize("agent", ["react", "parallel-react", "divide", "compiler"])
def test_a_thought_that_takes_all_tokens_is_no_answer(agent: str) -> None:
    with pytest.raises(AgentError, match="cut off after 1024 tokens"):
        weft.ask_sync("What time is it?", tools=[now], model=thinker(), agent=agent)


@pytest.mark.parametrize("agent", ["react", "parallel-react", "divide", "compiler"])
def test_a_thought_without_an_end_is_no_answer(agent: str) -> None:
    model = FakeModel(lambda _: "<think>hm, it may be noon")
    with pytest.raises(AgentError):
        weft.ask_sync("What time is it?", tools=[now], model=model, agent=agent)


def test_a_call_written_as_text_is_no_answer() -> None:
    model = FakeModel(lambda _: '<tool_call>{"name": "now", "arguments": {}}</tool_call>')
    with pytest.raises(AgentError, match="tool_format"):
        weft.ask_sync("What time is it?", tools=[now], model=model, agent="parallel-react")


def test_a_thought_before_the_answer_is_no_part_of_it() -> None:
    model = FakeModel(lambda _: "<think>hm</think>\n\nIt is noon.")
    answer = weft.ask_sync("What time is it?", tools=[now], model=model, agent="parallel-react")
    assert answer.value == "It is noon."


@pytest.mark.parametrize("bound", [0, 20])
def test_a_bounded_thought_leaves_the_answer_its_tokens(bound: int) -> None:
    model = thinker()
    options = weft.AgentOptions(thinking_tokens=bound)
    answer = weft.ask_sync("?", tools=[now], model=model, agent="parallel-react", options=options)
    assert answer.value == "It is noon."
    (request,) = model.requests
    assert (request.sampling.max_tokens, request.sampling.thinking_tokens) == (1024, bound)


@pytest.mark.parametrize(
    "command", [["think", "?", "--strategy", "direct"], ["ask", "?", "--agent", "parallel-react"]]
)
def test_on_the_command_line(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model = thinker()
    monkeypatch.setattr(Models, "client", lambda *_: model)
    result = CliRunner().invoke(app, [*command, "--thinking-tokens", "7", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["outputs"]["answer"] == "It is noon."
    assert model.requests[0].sampling.thinking_tokens == 7
    assert (
        found.get("thought", {"counts": {"reasoning_tokens": 7}})["counts"]["reasoning_tokens"] == 7
    )
