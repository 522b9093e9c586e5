from __future__ import annotations

import pytest

from tests.agents.loops.scripted_agent import roles
from weft.agents.chat.conversation import Conversation
from weft.core.values import Message, ToolCall, Usage

OPENING = (Message("system", "s" * 30), Message("user", "q" * 30))


def conversation(context_tokens: int | None = 400, answer_tokens: int = 100) -> Conversation:
    return Conversation(OPENING, context_tokens=context_tokens, answer_tokens=answer_tokens)


def refused(text: str) -> None:
    pytest.fail(text)


def test_messages_are_only_appended_while_there_is_room() -> None:
    talk = conversation()
    for number in range(4):
        before = talk.messages
        talk.say(Message("user", f"{number}" * 100), brief="short")
        talk.fit(refused)
        assert talk.messages[: len(before)] == before
    assert talk.messages[:2] == OPENING


def test_the_oldest_are_shortened_first_and_it_is_said() -> None:
    talk = conversation()
    said: list[str] = []
    for number in range(10):
        talk.say(Message("assistant", "why"))
        talk.say(Message("user", f"{number}" * 100), brief=f"{number} (shortened)")
    talk.fit(said.append)
    contents = [message.content for message in talk.messages if message.role == "user"][1:]
    brief = [content.endswith("(shortened)") for content in contents]
    assert brief == sorted(brief, reverse=True)
    assert 0 < sum(brief) < 10
    assert said == [
        f"{sum(brief)} earlier messages are shortened: the model's context is nearly full"
    ]
    assert roles(talk.messages) == "system user" + " assistant user" * 10
    talk.say(Message("user", "x" * 100), brief="x")
    talk.fit(refused)  # it had made room for another turn, not just for that one


def test_what_has_no_brief_form_stays() -> None:
    talk = conversation(100, 50)
    talk.say(Message("user", "x" * 10_000))
    talk.say(Message("user", "y" * 100), brief="y" * 100)
    talk.fit(refused)
    assert [len(message.content) for message in talk.messages] == [30, 30, 10_000, 100]


def test_how_long_a_token_is_is_learnt() -> None:
    talk = conversation(400, 100)
    assert talk.half_chars == 300
    talk.measure(Usage(prompt_tokens=60))
    assert talk.half_chars == 150
    talk.measure(Usage())
    assert talk.half_chars == 150


def test_calls_count_and_keep_their_identity() -> None:
    talk = conversation(100, 50)
    asked = ToolCall("c1", "search", '{"query": "' + "x" * 200 + '"}')
    talk.say(Message("assistant", "", (asked,)))
    talk.say(Message("tool", "r" * 300, tool_call_id="c1"), brief="r")
    talk.fit(lambda text: None)
    assert talk.messages[2:] == (
        Message("assistant", "", (asked,)),
        Message("tool", "r", tool_call_id="c1"),
    )


def test_an_unknown_context_has_room_and_a_tiny_one_keeps_half() -> None:
    assert conversation(None, 1_000).half_chars > 30_000
    assert conversation(100, 1_000).half_chars == 50
