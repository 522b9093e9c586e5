"""Prefill, reasoning, and what is found in the text, through the whole client."""

from __future__ import annotations

import pytest

from tests.serving.openai.endpoint_calls import ask, events, heard, question
from tests.serving.openai.scripted import EndpointServer, Json, Script, chunk, says, usage
from weft.core.errors import CapabilityError, ModelOutputError
from weft.core.ports import (
    Delta,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import ToolCall, ToolSpec
from weft.serving.openai import OpenAIModel
from weft.serving.text import ReasoningStyle

ADD = ToolSpec("add", "Add.", {"type": "object"})
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
WANTED = ToolCall("call_0", "add", '{"a": 1}')


def streamed(text: str, size: int = 3, **rest: object) -> Script:
    """`text` in pieces, each a token of its own."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [chunk({"content": piece}, token_ids=[n]) for n, piece in enumerate(pieces)]
    return Script([*chunks, chunk(finish="stop"), usage(1, len(pieces))])


def test_the_prompt_is_computed_when_its_first_chunk_comes(endpoints: EndpointServer) -> None:
    first = {**chunk({"role": "assistant", "content": ""}), "prompt_token_ids": [5, 6]}
    again = {**chunk({"content": "x"}), "prompt_token_ids": [5, 6]}
    endpoint = endpoints.add(Script([first, again, chunk(finish="stop")]))
    assert events(endpoint)[:2] == [Prefilled((5, 6)), TextDelta("x")]


def test_prefill_may_come_with_the_first_token(endpoints: EndpointServer) -> None:
    choice = {"index": 0, "text": "x", "token_ids": [7], "prompt_token_ids": [5, 6]}
    rest = {"index": 0, "text": "y", "finish_reason": "stop", "prompt_token_ids": None}
    endpoint = endpoints.add(Script([{"choices": [choice]}, {"choices": [rest]}]))
    seen = events(endpoint, ModelRequest(prompt_token_ids=(5, 6)))
    assert seen[:3] == [Prefilled((5, 6)), TextDelta("x", (7,)), TextDelta("y")]


def test_a_server_that_does_not_tell_has_no_prefill(endpoints: EndpointServer) -> None:
    assert not any(isinstance(event, Prefilled) for event in events(endpoints.add(says("x"))))


@pytest.mark.parametrize(
    "names", [["reasoning"], ["reasoning_content"], ["reasoning", "reasoning_content"]]
)
def test_reasoning_fields_as_servers_spell_them(
    endpoints: EndpointServer, names: list[str]
) -> None:
    chunks: list[Json] = [
        chunk(dict.fromkeys(names, part), token_ids=[n]) for n, part in enumerate(["Two ", "and"])
    ]
    chunks += [chunk({}, token_ids=[8]), chunk({"content": "4", "reasoning": None}, token_ids=[9])]
    endpoint = endpoints.add(Script([*chunks, chunk(finish="stop")]))
    *deltas, last = events(endpoint)
    assert deltas == [
        ReasoningDelta("Two ", (0,)),
        ReasoningDelta("and", (1,)),
        TextDelta("", (8,)),
        TextDelta("4", (9,)),
    ]
    answer = ask(endpoint)
    assert answer == last
    assert (answer.reasoning, answer.text, answer.token_ids) == ("Two and", "4", (0, 1, 8, 9))


def test_a_reasoning_field_of_a_strange_type_is_passed_over(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"reasoning": {"x": 1}, "content": "4"}, "stop")]))
    assert (ask(endpoint).text, ask(endpoint).reasoning) == ("4", "")


def test_reasoning_without_end_is_bounded_like_text(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(Script([chunk({"reasoning": "x" * 99})], repeat=True))
    with pytest.raises(ModelOutputError, match="larger"):
        ask(endpoint, max_answer_chars=1000)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_reasoning_in_the_text_is_found_where_asked_for(
    endpoints: EndpointServer, size: int
) -> None:
    endpoint = endpoints.add(streamed("<think>Two and two.</think>\n\nFour.", size))
    deltas: list[Delta] = []
    answer = heard(endpoint, deltas, reasoning="think")
    assert (answer.reasoning, answer.text) == ("Two and two.", "Four.")
    assert answer.token_ids == tuple(range(answer.usage.completion_tokens))
    with_ids = [delta for delta in deltas if isinstance(delta, TextDelta | ReasoningDelta)]
    assert tuple(i for delta in with_ids for i in delta.token_ids) == answer.token_ids
    assert endpoint.requests[-1]["skip_special_tokens"] is False


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("opening", ["<think>", ""])
def test_a_thought_in_the_text_is_no_answer_where_nothing_was_configured(
    endpoints: EndpointServer, size: int, opening: str
) -> None:
    endpoint = endpoints.add(streamed(f"{opening}Two and two.</think>\n\nFour.", size))
    answer = ask(endpoint)
    assert (answer.reasoning, answer.text) == ("Two and two.", "Four.")
    assert answer.token_ids == tuple(range(answer.usage.completion_tokens))
    thought = answer.usage.reasoning_tokens
    assert thought is not None
    assert 0 < thought <= answer.usage.completion_tokens
    if size == 1:
        assert thought == len(f"{opening}Two and two.</think>")


@pytest.mark.parametrize("text", ["Four.", "A tag is <think>, and its end </think>."])
def test_an_answer_without_a_thought_stays_as_it_is(endpoints: EndpointServer, text: str) -> None:
    answer = ask(endpoints.add(streamed(text)))
    assert (answer.text, answer.reasoning, answer.usage.reasoning_tokens is None) == (
        text,
        "",
        False,
    )


@pytest.mark.parametrize("delta", [{"reasoning": "Hm, hm."}, {"content": "<think>Hm.</think>"}])
@pytest.mark.parametrize("counted", [None, 0, 7])
def test_tokens_of_a_thought_are_counted_or_unknown(
    endpoints: EndpointServer, delta: Json, counted: int | None
) -> None:
    last = usage(1, 9)
    if counted is not None:
        last["usage"]["completion_tokens_details"] = {"reasoning_tokens": counted}
    chunks = [chunk(delta), chunk({"content": "Four."}), chunk(finish="stop"), last]
    answer = ask(endpoints.add(Script(chunks)))
    assert answer.usage.reasoning_tokens == (counted or None)


@pytest.mark.parametrize(
    ("style", "shown"), [("harmony", True), ("mistral", True), ("think", False), (None, False)]
)
def test_marks_that_are_special_tokens_are_asked_for_after_token_ids(
    endpoints: EndpointServer, style: ReasoningStyle | None, shown: bool
) -> None:
    endpoint = endpoints.add(streamed("4"))
    request = ModelRequest(prompt_token_ids=(1, 2))
    ask(endpoint, request, reasoning=style)
    sent = endpoint.requests[-1]
    assert (sent.get("skip_special_tokens") is False) == shown


def test_ids_come_with_the_text_they_spell(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(streamed("<think>a</think>b < c", 4))
    deltas: list[Delta] = []
    heard(endpoint, deltas, reasoning="think")
    # Pieces of four: a part of a tag waits for the rest of it, and so do its ids.
    assert deltas == [
        ReasoningDelta("a", (0, 1)),
        TextDelta("", (2, 3)),
        TextDelta("b < ", (4,)),
        TextDelta("c", (5,)),
    ]


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_calls_in_the_text_are_found_where_asked_for(endpoints: EndpointServer, size: int) -> None:
    endpoint = endpoints.add(streamed(f"Well.\n{CALL}\n{CALL}", size))
    deltas: list[Delta] = []
    answer = heard(endpoint, deltas, question(tools=(ADD,)), tool_format="hermes")
    assert answer.text == "Well."
    assert answer.finish_reason == "tool_calls"
    assert answer.tool_calls == (WANTED, ToolCall("call_1", "add", '{"a": 1}'))
    calls = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert calls == [ToolCallDelta(n, '{"a": 1}', f"call_{n}", "add") for n in range(2)]
    assert answer.token_ids == tuple(range(answer.usage.completion_tokens))
    sent = endpoint.requests[-1]
    assert "tools" not in sent
    assert "tool_choice" not in sent
    assert "<tools>" in sent["messages"][0]["content"]


def test_a_call_cut_off_stays_text(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(streamed(f"Well. {CALL[:-20]}"))
    answer = ask(endpoint, question(tools=(ADD,)), tool_format="hermes")
    assert (answer.text, answer.tool_calls) == (f"Well. {CALL[:-20]}", ())


def test_tags_are_text_where_nobody_asked_for_tools(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(streamed(CALL))
    for request in (question(), question(tools=(ADD,), tool_choice="none")):
        answer = ask(endpoint, request, tool_format="hermes")
        assert (answer.text, answer.tool_calls) == (CALL, ())
        assert "skip_special_tokens" not in endpoint.requests[-1]


def test_a_required_call_that_does_not_come_is_retryable(endpoints: EndpointServer) -> None:
    request = question(tools=(ADD,), tool_choice="required")
    with pytest.raises(ModelOutputError, match="no tool") as raised:
        ask(endpoints.add(streamed("No.")), request, tool_format="hermes")
    assert raised.value.retryable
    answer = ask(endpoints.add(streamed(CALL)), request, tool_format="hermes")
    assert answer.tool_calls == (WANTED,)


def test_an_output_held_to_a_schema_is_not_searched(endpoints: EndpointServer) -> None:
    endpoint = endpoints.add(streamed('{"a": 1}'))
    request = question(schema={"type": "object"})
    answer = ask(endpoint, request, reasoning="think-open", tool_format="json")
    assert (answer.text, answer.reasoning) == ('{"a": 1}', "")


def test_tools_and_a_schema_leave_the_model_its_choice(endpoints: EndpointServer) -> None:
    request = question(schema={"type": "object"}, tools=(ADD,))
    endpoint = endpoints.add(streamed(CALL))
    assert ask(endpoint, request, tool_format="hermes").tool_calls == (WANTED,)
    assert "response_format" not in endpoint.requests[-1]
    with pytest.raises(ModelOutputError, match="not JSON"):
        ask(endpoints.add(streamed("No.")), request, tool_format="hermes")


def test_prompts_of_ids_are_continued_as_they_are(endpoints: EndpointServer) -> None:
    choice = {"index": 0, "text": "Hm.</think>", "finish_reason": "stop"}
    endpoint = endpoints.add(Script([{"choices": [choice]}]))
    answer = ask(endpoint, ModelRequest(prompt_token_ids=(1,)), reasoning="think-open")
    assert (answer.text, answer.reasoning) == ("Hm.</think>", "")


def test_a_call_in_the_shape_that_came_before_tools(endpoints: EndpointServer) -> None:
    deltas: list[Json] = [
        {"function_call": {"name": "add", "arguments": ""}},
        {"function_call": {"arguments": '{"a"'}},
        {"function_call": {"arguments": ": 1}"}},
    ]
    endpoint = endpoints.add(Script([*map(chunk, deltas), chunk(finish="function_call")]))
    answer = ask(endpoint, question(tools=(ADD,)))
    assert (answer.tool_calls, answer.finish_reason) == ((WANTED,), "tool_calls")


@pytest.mark.parametrize("option", [{"reasoning": "thinking"}, {"tool_format": "xml"}])
def test_an_unknown_way_to_read_says_which_there_are(option: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is one of .*(think-open|mistral)"):
        OpenAIModel("http://127.0.0.1:9/v1", "m", **option)  # type: ignore[arg-type]


def test_an_adapter_answers_instead_of_the_model(endpoints: EndpointServer) -> None:
    listing = """{"data": [
        {"id": "m", "owned_by": "vllm", "root": "/m", "max_model_len": 64},
        {"id": "also m", "owned_by": "vllm", "root": "/m"},
        {"id": "lora", "owned_by": "vllm", "root": "/l", "parent": "also m"},
        {"id": "other lora", "owned_by": "vllm", "root": "/o", "parent": "other"}
    ]}"""
    endpoint = endpoints.add(says("x"), models=Script(plain=listing))
    ask(endpoint, question(adapter="lora"))
    ask(endpoint)
    assert [request["model"] for request in endpoint.requests] == ["lora", "m"]
    with pytest.raises(CapabilityError, match="it lists: lora\\)"):
        ask(endpoint, question(adapter="other lora"))


@pytest.mark.parametrize("size", [1, 7, 500])
def test_a_harmony_call_is_no_thought(endpoints: EndpointServer, size: int) -> None:
    thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    call = '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>'
    endpoint = endpoints.add(streamed(thought + call, size))
    answer = ask(endpoint, question(tools=(ADD,)), reasoning="harmony")
    (found,) = answer.tool_calls
    assert (found.name, found.arguments) == ("add", '{"a": 1}')
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("", "Hm.", "tool_calls")
    assert answer.token_ids == tuple(range(answer.usage.completion_tokens))
    if size == 1:
        assert answer.usage.reasoning_tokens <= len(thought)
