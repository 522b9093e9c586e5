"""Any conversation becomes turns that alternate, and loses no text, call or result."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.core.values import Message, ToolCall
from weft.serve import ModelRequest
from weft.serving.providers.answer import AnswerMemory, arguments_object
from weft.serving.providers.anthropic.body import body_of
from weft.serving.providers.card import ModelCard
from weft.serving.providers.gemini.body import contents_of
from weft.serving.providers.options import ProviderOptions

TEXTS = st.text(min_size=0, max_size=5)
ARGUMENTS = st.one_of(
    st.dictionaries(TEXTS, st.integers()).map(json.dumps), st.sampled_from(["", "[1]", "{", "null"])
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of users and models; every call gets its result, in any order."""
    messages = [Message("user", draw(TEXTS) + "?")]
    for turn in range(draw(st.integers(0, 4))):
        calls = tuple(
            ToolCall(f"id-{turn}-{n}", draw(st.sampled_from("fg")), draw(ARGUMENTS))
            for n in range(draw(st.integers(0, 3)))
        )
        messages.append(Message("assistant", draw(TEXTS), calls))
        results = [Message("tool", draw(TEXTS), tool_call_id=call.id) for call in calls]
        messages += draw(st.permutations(results))
        messages += [Message("user", draw(TEXTS))] * draw(st.integers(0, 2))
    return (*messages, Message("user", "!"))


@given(conversations())
def test_of_claude(messages: tuple[Message, ...]) -> None:
    body = body_of(ModelRequest(messages), ModelCard(), ProviderOptions(), AnswerMemory(), "m")
    turns = body["messages"]
    assert all(before["role"] != after["role"] for before, after in pairwise(turns))
    blocks = [block for turn in turns for block in turn["content"]]
    assert [block["text"] for block in blocks if block["type"] == "text"] == _texts(messages)
    used = [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
    assert used == _calls(messages)
    results = [
        (block["tool_use_id"], "".join(part["text"] for part in block["content"]))
        for block in blocks
        if block["type"] == "tool_result"
    ]
    assert results == _results(messages)


@given(conversations())
def test_of_gemini(messages: tuple[Message, ...]) -> None:
    turns = contents_of(ModelRequest(messages), AnswerMemory(), "m")
    assert all(before["role"] != after["role"] for before, after in pairwise(turns))
    parts = [part for turn in turns for part in turn["parts"]]
    assert [part["text"] for part in parts if "text" in part] == _texts(messages)
    called = [part["function_call"] for part in parts if "function_call" in part]
    assert [(c["id"], c["name"], c["args"]) for c in called] == _calls(messages)
    answered = [part["function_response"] for part in parts if "function_response" in part]
    assert [(each["id"], each["response"]["result"]) for each in answered] == _results(messages)
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    assert all(each["name"] == names[each["id"]] for each in answered)


@given(ARGUMENTS)
def test_arguments_that_are_no_object_are_kept_as_text(arguments: str) -> None:
    found = arguments_object(ToolCall("id", "f", arguments))
    try:
        expected = json.loads(arguments)
    except ValueError:
        expected = None
    wanted = expected if isinstance(expected, dict) else {"arguments": arguments}
    assert found == wanted


def _texts(messages: tuple[Message, ...]) -> list[str]:
    return [m.content for m in messages if m.content and m.role != "tool"]


def _calls(messages: tuple[Message, ...]) -> list[tuple[str, str, Any]]:
    calls = [call for message in messages for call in message.tool_calls]
    return [(call.id, call.name, arguments_object(call)) for call in calls]


def _results(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(m.tool_call_id or "", m.content) for m in messages if m.role == "tool"]
