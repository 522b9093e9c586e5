"""Models that do what nobody asked for: nodes end, and say what their answers are worth."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from tests.serving.openai.scripted import Endpoint, EndpointServer, Script, chunk
from weft.cli.exit_code import ExitCode
from weft.cli.main import app
from weft.core.ports import Capabilities, ModelClient, ModelRequest, complete
from weft.core.values import Message, ToolCall
from weft.serving.openai import OpenAIModel
from weft.testing import FakeModel, Reply
from weft.workflow import FlowResult
from weft.workflow.apps.flow_model import FlowModel
from weft.workflow.runtime.models.factory import Models

GHOST = Reply("", tool_calls=(ToolCall("c1", "does_not_exist", '{"a": 1}'),))
CALLS = Capabilities(tools=True, structured_output=True)
ANSWER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FENCED = '```json\n{"n": 42}\n```'


def city(name: str) -> str:
    return f"{name} has 3 million inhabitants."


def flow(model: ModelClient, **fields: Any) -> weft.Flow:
    made = weft.Flow("t", models={"m": model})
    made.output(answer=made.model("m", "Say it.", name="a", **fields))
    return made


def run(*replies: Reply | str, **fields: Any) -> FlowResult:
    return flow(FakeModel(replies, capabilities=CALLS), **fields).run_sync()


def served(endpoint: Endpoint, reasoning: Any = None, **fields: Any) -> FlowResult:
    async def main() -> FlowResult:
        async with aclosing(OpenAIModel(endpoint.base_url, "m", reasoning=reasoning)) as model:
            return await flow(model, **fields).run()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "fields", [{"max_tokens": 10}, {"think": {"strategy": "direct", "max_tokens": 10}}]
)
def test_a_server_that_does_not_stop_is_left(
    endpoints: EndpointServer, fields: dict[str, Any]
) -> None:
    endpoint = endpoints.add(Script([chunk({"content": "again and again. "})], repeat=True))
    result = served(endpoint, **fields)
    assert result.status == "partial"
    assert "cut off" in result.reasons[0]
    assert result.usage.completion_tokens < 40


def test_an_answer_that_is_cut_off_makes_the_run_partial() -> None:
    result = run("one two three four", max_tokens=3)
    assert (result.status, result.outputs) == ("partial", {"answer": "one two three"})
    assert len(result.reasons) == 1
    assert "a is partial: " in result.reasons[0]
    assert "the answer of fake is cut off after 3 tokens (raise `max_tokens`)" in result.reasons[0]
    assert run("one two three", max_tokens=3).status == "succeeded"
    several = run("one two three four", "one", samples=2, max_tokens=3)
    assert (several.status, several.outputs) == ("partial", {"answer": ["one two three", "one"]})


def test_a_typed_answer_that_is_complete_is_whole() -> None:
    result = run('{"n": 42} and more', schema=ANSWER, max_tokens=2)
    assert (result.status, result.outputs) == ("succeeded", {"answer": {"n": 42}})
    broken = run('{"n": 42 }', schema=ANSWER, max_tokens=2)
    assert "was cut off at" in broken.missing["answer"]
    assert "raise max_tokens" in broken.missing["answer"]


def test_calls_that_are_cut_off_are_partial(endpoints: EndpointServer) -> None:
    call = {"index": 0, "id": "1", "function": {"name": "city", "arguments": '{"name": "Rome"}'}}
    endpoint = endpoints.add(Script([chunk({"tool_calls": [call]}, "length")]))
    result = served(endpoint, tools=[weft.tool(city)])
    called = [{"name": "city", "arguments": {"name": "Rome"}}]
    assert result.outputs == {"answer": {"text": "", "tool_calls": called}}
    assert result.status == "partial"
    half = {"index": 0, "id": "1", "function": {"name": "city", "arguments": '{"name": "Ro'}}
    broken = served(
        endpoints.add(Script([chunk({"tool_calls": [half]}, "length")])), tools=[weft.tool(city)]
    )
    assert "was cut off at" in broken.missing["answer"]
    assert "raise max_tokens" in broken.missing["answer"]


@pytest.mark.parametrize(("limit", "code"), [(3, ExitCode.PARTIAL), (4, ExitCode.SUCCEEDED)])
def test_the_exit_status_of_weft_run(
    limit: int, code: ExitCode, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Models, "client", lambda *_: FakeModel(["one two three four"]))
    file = tmp_path / "t.yaml"
    file.write_text(
        f"name: t\nmodels: {{m: local:x}}\nnodes:\n"
        f"  a: {{model: m, prompt: Say it., max_tokens: {limit}}}\noutputs: {{a: '{{{{ a }}}}'}}\n"
    )
    assert CliRunner().invoke(app, ["run", str(file), "--quiet"]).exit_code == code


@pytest.mark.parametrize(
    "reply", [GHOST, "\u200b\u200b", "<think>hm", "<think>hm</think>\n", "I think, so.</think>"]
)
def test_what_is_no_answer_fails(reply: Reply | str) -> None:
    result = run(reply)
    assert result.status == "failed"
    assert "fake answered nothing" in result.missing["answer"]


def test_a_thought_that_is_cut_off_is_no_answer() -> None:
    result = run("<think> one two three four", max_tokens=3)
    assert "its thought took all of its tokens" in result.missing["answer"]
    for think in ({"strategy": "direct"}, {"strategy": "sample", "width": 2}):
        assert run("\u200b\u200b", think=think).status == "failed"


@pytest.mark.parametrize(
    "fields", [{}, {"think": "direct"}, {"agent": "parallel-react"}, {"agent": "react"}]
)
def test_json_in_one_code_fence_is_a_typed_answer(fields: dict[str, Any]) -> None:
    if "agent" in fields:
        fields = {**fields, "tools": [weft.tool(city)]}
    text = f"Answer: {FENCED}" if fields.get("agent") == "react" else FENCED
    assert run(text, schema=ANSWER, **fields).outputs == {"answer": {"n": 42}}


@pytest.mark.parametrize("agent", ["parallel-react", "react", "divide", "compiler"])
def test_a_call_of_an_unknown_tool_is_told(agent: str) -> None:
    heard: list[str] = []

    def script(request: ModelRequest) -> Reply | str:
        heard.append(request.messages[-1].content)
        if len(heard) > 1:
            return {"compiler": "1. join()", "parallel-react": "42"}.get(agent, "Answer: 42")
        return {
            "parallel-react": GHOST,
            "compiler": "1. does_not_exist(a=1)\n2. join($1)",
        }.get(agent, 'Thought: so\nCall: {"name": "does_not_exist", "arguments": {"a": 1}}')

    model = FakeModel(script, capabilities=CALLS)
    result = flow(model, agent=agent, tools=[weft.tool(city)]).run_sync()
    assert "KeyError" not in str(result.reasons)
    if agent != "compiler":  # whose plans are checked before anything runs
        assert result.outputs == {"answer": "42"}
        assert "no tool 'does_not_exist'" in heard[1]
        assert "there are: city" in heard[1]


def test_a_workflow_as_a_model_says_that_its_answer_is_cut_off() -> None:
    async def finish(live: bool, **fields: Any) -> str:
        model = FakeModel(["one two three four"])
        made = flow(model, **fields)
        request = ModelRequest((Message("user", "?"),), extra={"stream": live})
        async with aclosing(FlowModel(made, {"m": model})) as served:
            return (await complete(served, request)).finish_reason

    for live in (True, False):
        assert asyncio.run(finish(live, max_tokens=3)) == "length"
        assert asyncio.run(finish(live, max_tokens=4)) == "stop"
    think = {"strategy": "direct", "max_tokens": 3}
    assert asyncio.run(finish(True, think=think)) == "length"


def test_a_thought_opened_in_the_prompt_is_no_answer(endpoints: EndpointServer) -> None:
    texts = ["I think, so</thi", "nk>\n\n42"]
    chunks = [chunk({"content": text}) for text in texts]
    endpoint = endpoints.add(Script([*chunks, chunk(finish="stop")]))
    assert served(endpoint, reasoning="think").outputs == {"answer": "42"}
    nothing = endpoints.add(Script([chunk({"content": "I think, so.</think>"}, "stop")]))
    result = served(nothing, reasoning="think")
    assert "answered nothing" in result.missing["answer"]
