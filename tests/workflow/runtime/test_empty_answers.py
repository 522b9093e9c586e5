"""An answer of a model that is empty is a failure, and one that is cut off a partial result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.exit_code import ExitCode
from weft.cli.main import app
from weft.core.ports import Capabilities, ModelRequest, complete
from weft.core.values import Message, ToolCall
from weft.testing import FakeModel, Reply
from weft.workflow import FlowResult
from weft.workflow.runtime.models.factory import Models


def run(*replies: Reply | str, **fields: Any) -> FlowResult:
    flow = weft.Flow("t", models={"m": FakeModel(replies)})
    flow.output(answer=flow.model("m", "Say it.", name="a", **fields))
    return flow.run_sync()


@pytest.mark.parametrize("text", ["", "  ", "\n\t\n"])
def test_an_empty_answer_fails_unless_it_is_asked_for(text: str) -> None:
    result = run(text)
    assert result.status == "failed"
    assert "answered nothing" in result.missing["answer"]
    assert "allow_empty" in result.missing["answer"]
    allowed = run(text, allow_empty=True)
    assert (allowed.status, allowed.outputs) == ("succeeded", {"answer": text})


def test_an_empty_answer_is_asked_for_again_where_the_node_is_retried() -> None:
    retry = {"attempts": 2, "delay": 0}
    assert run("", "words", retry=retry).outputs == {"answer": "words"}
    spent = run(Reply("late words", reasoning="so " * 9), "words", max_tokens=5, retry=retry)
    assert "its thought took all of its tokens" in spent.missing["answer"]
    assert "raise max_tokens, bound the thought" in spent.missing["answer"]
    (failed,) = (o.failure for o in spent.outcomes.values() if o.failure is not None)
    assert failed.error == "OutputTruncated"


def test_a_bounded_thought_leaves_the_answer_its_tokens() -> None:
    thinks = Reply("late words", reasoning=" so" * 9)
    for bound in (0, 3, 50):
        result = run(thinks, max_tokens=5, thinking_tokens=bound)
        assert (result.status, result.outputs) == ("succeeded", {"answer": "late words"})
        assert result.usage.reasoning_tokens == min(bound, 9)
    assert run(thinks, max_tokens=1, thinking_tokens=3).status == "partial"
    unable = FakeModel([thinks], capabilities=Capabilities())
    flow = weft.Flow("t", models={"m": unable})
    flow.output(answer=flow.model("m", "Say it.", thinking_tokens=3))
    assert "has no bound for its thought" in flow.run_sync().missing["answer"]


def test_typed_answers_and_calls_need_no_text() -> None:
    assert run('""', schema={"type": "string"}).outputs == {"answer": ""}

    @weft.tool
    def now() -> str:
        return "noon"

    called = run(Reply("", tool_calls=(ToolCall("1", "now", "{}"),)), tools=[now])
    assert called.outputs["answer"]["tool_calls"] == [{"name": "now", "arguments": {}}]
    assert "answered nothing" in run("", tools=[now]).missing["answer"]


def test_samples_without_text_are_no_samples() -> None:
    assert run("", "words", "", samples=3).outputs == {"answer": ["words"]}
    assert "2 of 2 samples failed" in run("", samples=2).missing["answer"]


def test_a_thought_that_is_cut_off_is_a_partial_result() -> None:
    think = {"strategy": "direct", "max_tokens": 3}
    result = run("one two three four", think=think)
    assert result.status == "partial"
    assert result.outputs == {"answer": "one two three"}
    assert "the answer is cut off" in result.reasons[0]
    assert "raise max_tokens" in result.reasons[0]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("one two", ExitCode.SUCCEEDED),
        ("one two three four", ExitCode.PARTIAL),
        ("", ExitCode.FAILED),
        (Reply("late", reasoning="so " * 9), ExitCode.FAILED),
    ],
)
@pytest.mark.parametrize("strategy", ["direct", "skeleton"])
def test_the_exit_status_of_weft_think(
    strategy: str, reply: Reply | str, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Models, "client", lambda *_: FakeModel([reply]))
    words = ["think", "What is 3 + 4?", "--strategy", strategy, "--max-tokens", "3", "--quiet"]
    assert CliRunner().invoke(app, words).exit_code == code


def test_a_model_that_thinks_says_where_its_answer_is_cut_off() -> None:
    async def reason(*replies: str) -> str:
        model = weft.ThoughtModel(FakeModel(replies), "direct", weft.ThinkOptions(max_tokens=3))
        return (await complete(model, ModelRequest((Message("user", "why?"),)))).finish_reason

    assert asyncio.run(reason("one two three four")) == "length"
    assert asyncio.run(reason("one")) == "stop"
