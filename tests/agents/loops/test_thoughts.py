"""What a model thinks before a reply is no part of it, and is not sent again."""

from __future__ import annotations

import pytest

import weft
from weft.errors import AgentError
from weft.testing import FakeModel, Reply

LOOPS = ["react", "parallel-react", "divide", "compiler"]


@weft.tool
def now() -> str:
    """The time of day."""
    return "noon"


def said(model: FakeModel) -> list[str]:
    """What later requests say that the model wrote."""
    return [
        message.content
        for request in model.requests[1:]
        for message in request.messages
        if message.role == "assistant"
    ]


@pytest.mark.parametrize("agent", LOOPS)
@pytest.mark.parametrize("text", ["<think>secret</think>", "<think>secret", "[THINK]secret"])
def test_a_thought_alone_is_not_sent_again_and_the_hint_says_what_to_change(
    agent: str, text: str
) -> None:
    model = FakeModel(lambda _: text)
    with pytest.raises(AgentError) as failed:
        weft.ask_sync("What time is it?", tools=[now], model=model, agent=agent)
    for words in ("thinking_tokens: 500", "thinking_tokens: 0", "--thinking off"):
        assert words in str(failed.value)
    assert "larger model" not in str(failed.value)
    assert "(nothing)" in said(model)
    assert not any("secret" in text for text in said(model))


@pytest.mark.parametrize("agent", LOOPS)
def test_where_a_thought_took_all_tokens_the_hint_names_max_tokens(agent: str) -> None:
    model = FakeModel(lambda _: Reply("It is noon.", reasoning=" hm" * 3_000))
    with pytest.raises(AgentError, match=r"raise max_tokens, bound the thought") as failed:
        weft.ask_sync("What time is it?", tools=[now], model=model, agent=agent)
    assert "held to a grammar" not in str(failed.value)


def test_a_reply_is_sent_again_without_its_thought() -> None:
    calls = iter(
        [
            (
                "<think>secret: perhaps\nCall: {}</think>Thought: look\n"
                'Call: {"name": "now", "arguments": {}}'
            ),
            "<think>secret</think>Answer: noon",
        ]
    )
    model = FakeModel(lambda _: next(calls))
    options = weft.AgentOptions(constrain="never")
    answer = weft.ask_sync("?", tools=[now], model=model, agent="react", options=options)
    assert answer.value == "noon"
    assert said(model) == ['Thought: look\nCall: {"name": "now", "arguments": {}}']


def test_a_call_within_a_thought_is_not_made() -> None:
    called: list[str] = []

    @weft.tool
    def erase(name: str) -> str:
        """Erase a file."""
        called.append(name)
        return "gone"

    model = FakeModel(
        lambda _: (
            '<think>I could\nCall: {"name": "erase", "arguments": {"name": "a"}}\n'
            "but I must not.</think>\nAnswer: nothing to do"
        )
    )
    options = weft.AgentOptions(constrain="never")
    answer = weft.ask_sync("?", tools=[erase], model=model, agent="react", options=options)
    assert (answer.value, called) == ("nothing to do", [])


def test_marks_of_calls_within_a_thought_are_no_call() -> None:
    model = FakeModel(lambda _: "<think>no <tool_call> is needed</think>It is noon.")
    answer = weft.ask_sync("?", tools=[now], model=model, agent="parallel-react")
    assert answer.value == "It is noon."


@pytest.mark.parametrize("agent", LOOPS)
def test_errors_name_the_model_that_was_asked(agent: str) -> None:
    model = FakeModel(lambda _: "<think>hm", model="qwen3-8b")
    with pytest.raises(AgentError) as failed:
        weft.ask_sync("?", tools=[now], model=model, agent=agent)
    assert "chat" not in str(failed.value)
