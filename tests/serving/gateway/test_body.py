from __future__ import annotations

import copy
from typing import Any

import pytest

from weft.core.values import Message, ToolCall, ToolSpec
from weft.serving.gateway.asking import requests_of
from weft.serving.gateway.body import chat_body, further_fields
from weft.serving.gateway.problem import Refused

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def request(**fields: Any) -> Any:
    return requests_of(chat_body({**copy.deepcopy(BODY), **fields}), {}, 60)[0]


def refused(raw: object) -> Any:
    with pytest.raises(Refused) as raised:
        requests_of(chat_body(raw), {}, 60)
    assert raised.value.problem.status == 400
    return raised.value.problem


def test_all_kinds_of_messages_are_understood() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be kind.", "name": "ignored"},
        {"role": "developer", "content": [{"type": "text", "text": "Be "}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "content": "4", "tool_call_id": "c1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]
    assert request(messages=messages).messages == (
        Message("system", "Be kind."),
        Message("system", "Be "),
        Message("user", "ab"),
        Message("assistant", "", (ToolCall("c1", "add", "{}"),)),
        Message("tool", "4", (), "c1"),
        Message("assistant", "No."),
    )


def test_sampling_passes_through() -> None:
    sampling = request(
        max_tokens=9, temperature=0, top_p=0.5, top_k=3, stop="END", seed=4, user="me"
    ).sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p) == (9, 0, 0.5)
    assert (sampling.top_k, sampling.stop, sampling.seed) == (3, ("END",), 4)
    assert request(stop_token_ids=[2, 5]).sampling.stop_token_ids == (2, 5)
    newer = request(max_tokens=9, max_completion_tokens=7, stop=["a", "b"]).sampling
    assert (newer.max_tokens, newer.stop, newer.temperature) == (7, ("a", "b"), None)


def test_each_choice_has_a_seed_of_its_own() -> None:
    requests = requests_of(chat_body({**BODY, "n": 3, "seed": 5}), {}, 60)
    assert [each.sampling.seed for each in requests] == [5, 6, 7]
    assert [each.sampling.seed for each in requests_of(chat_body({**BODY, "n": 2}), {}, 60)] == [
        None,
        None,
    ]


def test_tools_and_their_choice() -> None:
    spec = ToolSpec("add", "", {"type": "object"})
    assert request(tools=[TOOL]).tools == (spec,)
    assert request(tools=[TOOL]).tool_choice == "auto"
    assert request(tools=[TOOL], tool_choice="required").tool_choice == "required"
    other = {"type": "function", "function": {"name": "other", "description": "More."}}
    chosen = {"type": "function", "function": {"name": "add"}}
    one = request(tools=[TOOL, other], tool_choice=chosen)
    assert (one.tools, one.tool_choice) == ((spec,), "required")
    assert request(tools=[other]).tools[0].parameters == {"type": "object"}


def test_response_formats() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    assert request(response_format=wanted).schema == schema
    assert request(response_format={"type": "json_object"}).schema == {"type": "object"}
    assert request(response_format={"type": "text"}).schema is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": 4}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 4}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
        ),
        ({"n": 0}, "n"),
        ({"n": "2"}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 2**70}, "seed"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": ""}, "stop"),
        ({"decode": ""}, "decode"),
        ({"decode": 4}, "decode"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"stop_token_ids": list(range(65))}, "stop_token_ids"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    assert refused({**BODY, **fields}).param == param


@pytest.mark.parametrize("raw", [None, [], "x", 4, {}, {"model": "m"}])
def test_what_is_no_request_at_all_is_refused(raw: object) -> None:
    refused(raw)


def test_unknown_fields_are_ignored_unless_they_change_the_answer() -> None:
    harmless = {"store": True, "metadata": {}, "made_up": 1, "logprobs": False, "logit_bias": None}
    neutral = {"frequency_penalty": 0, "presence_penalty": 0.0, "parallel_tool_calls": True}
    assert further_fields({**BODY, **harmless, **neutral}, frozenset()) == {}
    for name, value in (
        ("frequency_penalty", 0.5),
        ("logprobs", True),
        ("logit_bias", {"5": 1}),
        ("functions", []),
        ("audio", {"voice": "x"}),
        ("parallel_tool_calls", False),
    ):
        with pytest.raises(Refused, match=name):
            further_fields({**BODY, name: value}, frozenset())
        assert further_fields({**BODY, name: value}, frozenset({name})) == {name: value}
