from __future__ import annotations

from typing import Any

import pytest

from tests.serving.openai.endpoint_calls import question
from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports import ConcurrentAttention, ModelRequest, Placed, Sampling
from weft.core.values import Lossless, Message, ToolCall, ToolSpec
from weft.serving.openai.body import body_of
from weft.serving.openai.server import Kind, Server

OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
CLOSED = {**OPEN, "required": ["a"], "additionalProperties": False}


def body(request: ModelRequest, kind: Kind = "other", priority: bool = False) -> dict[str, Any]:
    server = Server(kind)
    return body_of(request, server, server.capabilities(priority))


def test_a_plain_question_says_nothing_that_was_not_asked() -> None:
    assert body(question()) == {
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_a_grammar_for_a_vllm_that_reads_them() -> None:
    server = Server("vllm", version=(0, 32))
    request = question(grammar='start: "a"')
    asked = body_of(request, server, server.capabilities(False))
    assert asked["structured_outputs"] == {"grammar": 'start: "a"'}
    with pytest.raises(CapabilityError, match="grammar"):
        body(request, "llamacpp")
    twice = question(grammar='start: "a"', extra={"structured_outputs": {"regex": "b"}})
    with pytest.raises(ModelRequestError, match="structured_outputs"):
        body_of(twice, server, server.capabilities(False))


def test_an_unfinished_answer_is_gone_on_with() -> None:
    asked = body(ModelRequest((Message("user", "hi"), Message("assistant", "Well, "))), "vllm")
    assert asked["messages"][-1] == {"role": "assistant", "content": "Well, "}
    assert (asked["continue_final_message"], asked["add_generation_prompt"]) == (True, False)
    with pytest.raises(CapabilityError, match="go on"):
        body(ModelRequest((Message("user", "hi"), Message("assistant", "Well, "))), "openai")


def test_an_unfinished_answer_without_a_word_is_none() -> None:
    asked = body(ModelRequest((Message("user", "hi"), Message("assistant", ""))), "vllm")
    assert asked["messages"] == [{"role": "user", "content": "hi"}]
    assert "continue_final_message" not in asked


def test_sampling() -> None:
    sampling = Sampling(10, 0.0, 0.9, 40, ("END",), 7)
    fields = body(question(sampling=sampling), "vllm")
    assert {name: fields[name] for name in ("max_tokens", "temperature", "top_p", "top_k")} == {
        "max_tokens": 10,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 40,
    }
    assert (fields["stop"], fields["seed"]) == (["END"], 7)


def test_the_longest_answer_goes_by_two_names() -> None:
    request = question(sampling=Sampling(max_tokens=5))
    assert body(request, "openai")["max_completion_tokens"] == 5
    assert "max_tokens" not in body(request, "openai")


@pytest.mark.parametrize("kind", ["openai", "other"])
@pytest.mark.parametrize("asked", [{"top_k": 5}, {"min_p": 0.1}], ids=["top_k", "min_p"])
def test_what_would_be_ignored_is_refused(kind: Kind, asked: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError, match=next(iter(asked))):
        body(question(sampling=Sampling(**asked)), kind)


def test_min_p_is_sent_to_servers_that_have_it() -> None:
    own: tuple[Kind, ...] = ("vllm", "sglang", "llamacpp")
    for kind in own:
        assert body(question(sampling=Sampling(min_p=0.1)), kind)["min_p"] == 0.1
        assert body(question(sampling=Sampling(min_p=0.0)), kind)["min_p"] == 0.0
        assert "min_p" not in body(question(), kind)
    hosted: tuple[Kind, ...] = ("openai", "other")
    for kind in hosted:
        assert "min_p" not in body(question(sampling=Sampling(min_p=0.0)), kind)


def test_stop_tokens_are_sent_where_they_are_known() -> None:
    request = question(sampling=Sampling(stop_token_ids=(2, 7)))
    assert body(request, "vllm")["stop_token_ids"] == [2, 7]
    others: tuple[Kind, ...] = ("openai", "llamacpp", "other")
    for kind in others:
        with pytest.raises(CapabilityError, match="stop at token ids"):
            body(request, kind)


def test_as_many_of_the_largest_logprobs_as_were_asked_for() -> None:
    assert body(question(top_logprobs=3), "openai")["top_logprobs"] == 3
    # vLLM counts the drawn token, which may be none of the three.
    assert body(question(top_logprobs=3), "vllm")["top_logprobs"] == 4
    assert body(question(top_logprobs=20), "vllm")["top_logprobs"] == 20
    ids = ModelRequest(prompt_token_ids=(1,), top_logprobs=3)
    assert body(ids, "vllm")["logprobs"] == 3
    assert body(ids, "vllm")["return_tokens_as_token_ids"]
    assert body(question(logprobs=True), "vllm")["logprobs"] is True
    limits: dict[Kind, int] = {"vllm": 20, "sglang": 0}
    for kind, most in limits.items():
        with pytest.raises(CapabilityError, match=f"{most} top_logprobs"):
            body(question(top_logprobs=most + 1), kind)


@pytest.mark.parametrize(
    "fields",
    [{"placement": (Placed(1, 0),)}, {"attention": ConcurrentAttention("a group", 2, 0)}],
)
def test_positions_and_common_attention_are_no_servers_business(fields: dict[str, Any]) -> None:
    with pytest.raises(CapabilityError, match="local model"):
        body(ModelRequest(prompt_token_ids=(1,), **fields), "vllm")


def test_a_conversation_with_tools() -> None:
    call = ToolCall("id-1", "add", '{"a": 1}')
    request = ModelRequest(
        (
            Message("system", "Be brief."),
            Message("assistant", "", (call,)),
            Message("tool", "2", tool_call_id="id-1"),
        )
    )
    function = {"name": "add", "arguments": '{"a": 1}'}
    assert body(request)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "id-1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "id-1"},
    ]


@pytest.mark.parametrize(
    ("schema", "kind", "strict"),
    [
        (OPEN, "vllm", True),
        (OPEN, "other", False),
        (CLOSED, "other", True),
        ({**CLOSED, "properties": {"a": OPEN}}, "openai", False),
        ({**CLOSED, "properties": {"a": CLOSED}}, "openai", True),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, OPEN]}}}, "openai", False),
        ({**CLOSED, "required": []}, "openai", False),
    ],
)
def test_strict_where_the_server_allows_it(schema: Any, kind: Kind, strict: bool) -> None:
    tool = ToolSpec("add", "Add.", schema)
    fields = body(question(tools=(tool,), schema=schema), kind)
    assert fields["tools"][0]["function"].get("strict", False) is strict
    assert fields["response_format"]["json_schema"]["strict"] is strict
    assert fields["response_format"]["json_schema"]["schema"] == schema
    assert fields["tool_choice"] == "auto"


def test_priority_is_turned_round_and_sent_only_where_it_counts() -> None:
    request = question(priority=3)
    assert body(request, "vllm", priority=True)["priority"] == -3
    assert "priority" not in body(request, "vllm")


def test_token_ids_and_logprobs() -> None:
    assert body(question(logprobs=True), "vllm")["logprobs"] is True
    assert body(question(), "vllm")["return_token_ids"] is True
    assert "return_token_ids" not in body(question(), "openai")


def test_prompt_token_ids_go_as_they_are() -> None:
    request = ModelRequest(prompt_token_ids=(1, 2, 3), logprobs=True)
    fields = body(request, "vllm")
    assert (fields["prompt"], fields["logprobs"]) == ([1, 2, 3], 1)
    assert "messages" not in fields
    with pytest.raises(CapabilityError, match="token ids"):
        body(request, "other")


def test_prompt_token_ids_have_no_tools() -> None:
    request = ModelRequest(prompt_token_ids=(1,), tools=(ToolSpec("add", "Add.", OPEN),))
    with pytest.raises(ModelRequestError, match="tools"):
        body(request, "vllm")


def test_a_shared_prefix_has_a_name_only_where_servers_take_one() -> None:
    request = question(cache_prefix="p")
    assert body(request, "openai")["prompt_cache_key"] == "p"
    assert "prompt_cache_key" not in body(request, "vllm")


def test_extra_fields_are_added_but_never_break_ours() -> None:
    assert body(question(extra={"min_p": 0.1}))["min_p"] == 0.1
    with pytest.raises(ModelRequestError, match="n, stream"):
        body(question(extra={"stream": False, "n": 2}))


def test_no_decoder_can_be_asked_for() -> None:
    with pytest.raises(CapabilityError, match="eagle"):
        body(question(decode=Lossless("eagle")))
