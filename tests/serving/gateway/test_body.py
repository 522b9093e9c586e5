from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from weft.core.values import Message, ToolCall, ToolSpec
from weft.serving.gateway.body import chat_body, check_honoured, further_fields
from weft.serving.gateway.chat import check_schemas, requests_of
from weft.serving.gateway.problem import RequestRefused

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def _tool(name: str, parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _answer(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def request(**fields: Any) -> Any:
    return requests_of(chat_body({**copy.deepcopy(BODY), **fields}), {}, 60)[0]


def refused(raw: object) -> Any:
    with pytest.raises(RequestRefused) as raised:
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
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        ({"tools": [_tool("../x\n", {})]}, "tools[0].function.name"),
        ({"tools": [_tool("x\n", {})]}, "tools[0].function.name"),
        ({"stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    assert refused({**BODY, **fields}).param == param


@pytest.mark.parametrize("raw", [None, [], "x", 4, {}, {"model": "m"}])
def test_what_is_no_request_at_all_is_refused(raw: object) -> None:
    refused(raw)


def test_fields_without_effect_pass_and_go_nowhere() -> None:
    client = {"user": "me", "metadata": {"a": 1}, "store": True, "service_tier": "auto"}
    neutral = {"frequency_penalty": 0, "presence_penalty": 0.0, "parallel_tool_calls": True}
    off = {"logprobs": False, "logit_bias": None, "best_of": 1, "ignore_eos": False}
    assert further_fields({**BODY, **client, **neutral, **off}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min_p", 0.1),
        ("repetition_penalty", 1.2),
        ("reasoning_effort", "low"),
        ("chat_template_kwargs", {"enable_thinking": False}),
        ("structured_outputs", {"regex": "a"}),
        ("guided_json", {"type": "object"}),
        ("guided_regex", "(a+)+$"),
        ("ignore_eos", True),
        ("ignore_eos", 0),
        ("min_tokens", 5),
        ("bad_words", ["no"]),
        ("best_of", 4),
        ("frequency_penalty", 0.5),
        ("logprobs", True),
        ("logit_bias", {"5": 1}),
        ("functions", []),
        ("audio", {"voice": "x"}),
        ("parallel_tool_calls", False),
        ("made_up", 1),
        ("inputs", {}),
    ],
)
def test_every_other_field_is_honoured_or_refused_by_name(name: str, value: object) -> None:
    found = further_fields({**BODY, name: value})
    assert found == {name: value}
    check_honoured(found, frozenset({name}))
    with pytest.raises(RequestRefused, match=f"`{name}` is not supported") as raised:
        check_honoured(found, frozenset())
    assert (raised.value.problem.status, raised.value.problem.param) == (400, name)


def test_conversations_are_counted_before_they_are_read() -> None:
    many = {**BODY, "messages": BODY["messages"] * 3}
    assert len(chat_body(many, 3).messages) == 3
    with pytest.raises(RequestRefused, match="more than 2 messages"):
        chat_body(many, 2)
    parts = {"role": "user", "content": [{"type": "text", "text": "x"}] * 10_001}
    assert "parts" in refused({**BODY, "messages": [parts]}).message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [_tool("add", {"type": "obj"})]}, "tools[0].function.parameters"),
        ({"tools": [_tool("add", {"pattern": "(?=a)b"})]}, "tools[0].function.parameters"),
        ({"response_format": _answer({"$ref": "#"})}, "response_format"),
        ({"response_format": _answer({"pattern": r"(a)\1"})}, "response_format"),
        ({"tools": [_tool(f"t{i}", {"enum": ["x" * 190_000]}) for i in range(6)]}, "tools[5]"),
    ],
)
def test_schemas_that_cannot_be_used_are_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRefused) as raised:
        asyncio.run(check_schemas(request(**fields)))
    assert raised.value.problem.status == 400
    assert str(raised.value.problem.param).startswith(param)
    asyncio.run(check_schemas(request(tools=[TOOL])))
    asyncio.run(check_schemas(request()))
