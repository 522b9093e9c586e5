"""Recorded exchanges of two hosted APIs: what is sent, and what is made of the answers."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.golden_files import assert_golden
from tests.serving.openai.scripted import Endpoint, EndpointServer, Script
from tests.serving.providers.scripted import APIS, OLDER, RECORDED, HostedApi
from weft.core.content import Image
from weft.core.errors import (
    ContextLengthExceeded,
    ModelError,
    ModelNotFound,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelUnavailable,
    OutputTruncated,
)
from weft.core.ports import ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from weft.core.values import ToolSpec
from weft.serve import Completion, Message, ModelRequest, Sampling, Usage
from weft.serving.providers.answer import ProviderAnswer

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cf"
    "c0000003010100c9fe92ef0000000049454e44ae426082"
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
}
TOOLS = (
    ToolSpec(
        "weather",
        "The weather of a city.",
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
    ToolSpec("clock", "The time.", {"type": "object", "properties": {}}),
)
USER = Message("user", "What is it?")


def request(*messages: Message, **fields: Any) -> ModelRequest:
    fields.setdefault("sampling", Sampling(max_tokens=1024))
    return ModelRequest(messages or (USER,), **fields)


REQUESTS = {
    "text": request(
        Message("system", "You are terse."),
        Message("system", "You are kind."),
        Message("user", "Hello"),
        Message("assistant", "Hi."),
        Message("user", "Say it again."),
        Message("user", "With a bang."),
        sampling=Sampling(max_tokens=256, temperature=0.5, top_k=40, top_p=0.9, stop=("END",)),
    ),
    "parallel_tools": request(tools=TOOLS, tool_choice="required"),
    "thinking": request(sampling=Sampling(max_tokens=4096, reasoning_effort="high")),
    "thinking_tool": request(tools=TOOLS),
    "structured": request(schema=PERSON),
    "truncated": request(sampling=Sampling(max_tokens=16)),
    "image": request(
        Message.of("user", ("What is this?", Image.from_bytes(PNG), "One sentence, please."))
    ),
    "refusal": request(),
}
TEXTS = {
    "text": "Hello wörld!",
    "parallel_tools": "Okay, let me check.",
    "thinking": "12,231",
    "thinking_tool": "One moment.",
    "structured": '{"name": "Ada", "age": 36}',
    "truncated": "",
    "image": "A red square.",
    "refusal": "I can",
}
FINISHES = {"truncated": "length", "refusal": "refused"} | dict.fromkeys(
    ("parallel_tools", "thinking_tool"), "tool_calls"
)
USAGES = {
    "text": Usage(1221, 12, 1200, requests=1),
    "parallel_tools": Usage(472, 89, requests=1),
    "thinking": Usage(25, 64, requests=1, reasoning_tokens=50),
    "thinking_tool": Usage(25, 70, requests=1),
    "structured": Usage(25, 15, requests=1),
    "truncated": Usage(25, 16, requests=1),
    "image": Usage(1500, 6, requests=1),
    "refusal": Usage(25, 3, requests=1),
}


@pytest.fixture(params=list(APIS))
def api(request: pytest.FixtureRequest) -> HostedApi:
    return APIS[request.param]


def recorded(api: HostedApi, name: str, **rest: Any) -> Script:
    """The answer of that name, as it is on the wire."""
    head, body = (RECORDED / api.name / f"{name}.http").read_text("utf-8").split("\n\n", 1)
    status, *lines = head.split("\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Script(status=int(status.split()[1]), headers=headers, plain=body, **rest)


def ask(
    api: HostedApi, endpoints: EndpointServer, script: Script, asked: ModelRequest, **given: Any
) -> tuple[Endpoint, list[ModelEvent]]:
    endpoint = api.endpoint(endpoints, script)

    async def main() -> list[ModelEvent]:
        async with (
            aclosing(api.connect(endpoint, **given)) as client,
            aclosing(client.generate(asked)) as events,
        ):
            return [event async for event in events]

    return endpoint, asyncio.run(main())


def sampled(api: HostedApi) -> dict[str, Any]:
    return OLDER if api.name == "anthropic" else {}


@pytest.mark.parametrize("name", list(REQUESTS))
def test_exchanges(api: HostedApi, name: str, endpoints: EndpointServer) -> None:
    options = sampled(api) if name == "text" else {}
    endpoint, (*deltas, last) = ask(
        api, endpoints, recorded(api, name), REQUESTS[name], options=options
    )
    assert isinstance(last, Completion)
    assert last.text == TEXTS[name]
    assert last.text == "".join(d.text for d in deltas if isinstance(d, TextDelta))
    assert last.reasoning == "".join(d.text for d in deltas if isinstance(d, ReasoningDelta))
    assert last.finish_reason == FINISHES.get(name, "stop")
    assert replace(last.usage, reasoning_tokens=0) == replace(USAGES[name], reasoning_tokens=0)
    if name == "thinking":
        assert last.usage.reasoning_tokens == 50
    assert last.model in {"claude-sonnet-5", "gemini-3-pro"}
    (sent,) = endpoint.requests
    golden = RECORDED / api.name / f"{name}.request.json"
    assert_golden(golden, json.dumps(sent, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def test_a_stop_text_is_cut_off_and_named_where_the_api_names_it(endpoints: EndpointServer) -> None:
    for api in APIS.values():
        *_, last = ask(
            api, endpoints, recorded(api, "text"), REQUESTS["text"], options=sampled(api)
        )[1]
        assert isinstance(last, Completion)
        assert last.stop == ("END" if api.name == "anthropic" else None)


def test_parallel_calls_come_whole_and_in_order(api: HostedApi, endpoints: EndpointServer) -> None:
    _, (*deltas, last) = ask(
        api, endpoints, recorded(api, "parallel_tools"), REQUESTS["parallel_tools"]
    )
    assert isinstance(last, Completion)
    first, second = last.tool_calls
    assert (first.name, json.loads(first.arguments)) == ("weather", {"city": "San Francisco"})
    assert (second.name, second.arguments) == ("clock", "{}")
    assert first.id != second.id
    for index, call in enumerate(last.tool_calls):
        pieces = [d for d in deltas if isinstance(d, ToolCallDelta) and d.index == index]
        assert (pieces[0].id, pieces[0].name) == (call.id, call.name)
        assert "".join(piece.arguments for piece in pieces) == call.arguments


def test_thoughts_are_reasoning(api: HostedApi, endpoints: EndpointServer) -> None:
    *_, last = ask(api, endpoints, recorded(api, "thinking"), REQUESTS["thinking"])[1]
    assert isinstance(last, Completion)
    assert last.reasoning.endswith("27 * 453 is 12231.")


@pytest.mark.parametrize("edited", [False, True])
def test_the_next_turn_has_the_signed_thoughts_unless_the_program_wrote_another(
    api: HostedApi, edited: bool, endpoints: EndpointServer
) -> None:
    answers = iter(("thinking_tool", "thinking_result"))
    endpoint = api.endpoint(endpoints, lambda _: recorded(api, next(answers)))

    async def main() -> None:
        async with aclosing(api.connect(endpoint)) as client:
            asked = REQUESTS["thinking_tool"]
            *_, first = [event async for event in client.generate(asked)]
            assert isinstance(first, Completion)
            text = "Just a moment." if edited else first.text
            turns = [Message("assistant", text, first.tool_calls)]
            turns += [Message("tool", "sunny", tool_call_id=call.id) for call in first.tool_calls]
            more = replace(asked, messages=(*asked.messages, *turns))
            *_, last = [event async for event in client.generate(more)]
            assert isinstance(last, Completion)
            assert last.text == "It is sunny."

    asyncio.run(main())
    sent = json.dumps(endpoint.requests[1], indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    name = "thinking_result_edited" if edited else "thinking_result"
    assert_golden(RECORDED / api.name / f"{name}.request.json", sent)
    assert ("ignature" in sent) is not edited


def test_an_answer_that_is_cut_inside_its_value_is_truncated(
    api: HostedApi, endpoints: EndpointServer
) -> None:
    asked = replace(REQUESTS["truncated"], schema=PERSON)
    with pytest.raises(OutputTruncated, match="at 16 tokens") as raised:
        ask(api, endpoints, recorded(api, "truncated"), asked)
    assert raised.value.usage is not None
    assert replace(raised.value.usage, reasoning_tokens=0) == USAGES["truncated"]


def test_a_refusal_says_why(api: HostedApi, endpoints: EndpointServer) -> None:
    *_, last = ask(api, endpoints, recorded(api, "refusal"), REQUESTS["refusal"])[1]
    assert isinstance(last, Completion)
    # The library of Gemini does not pass the API's message on.
    why = {"anthropic": "This request may enable harm.", "gemini": "SAFETY"}[api.name]
    assert (last.text, last.refusal) == ("I can", why)


def test_a_prompt_that_gemini_blocks_is_a_refusal(endpoints: EndpointServer) -> None:
    api = APIS["gemini"]
    *_, last = ask(api, endpoints, recorded(api, "blocked_prompt"), request(schema=PERSON))[1]
    assert isinstance(last, Completion)
    assert (last.finish_reason, last.refusal) == ("refused", "PROHIBITED_CONTENT")


def test_a_call_that_gemini_cannot_read_is_worth_another_try(endpoints: EndpointServer) -> None:
    api = APIS["gemini"]
    with pytest.raises(ModelOutputError, match="MALFORMED_FUNCTION_CALL") as raised:
        ask(api, endpoints, recorded(api, "malformed_call"), REQUESTS["parallel_tools"])
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("name", "kind", "retryable", "words"),
    [
        ("error_401", ModelRequestError, False, "answered 401"),
        ("error_404", ModelNotFound, False, "the API has no model 'm'"),
        ("error_400", ContextLengthExceeded, False, "does not fit the model's context"),
        ("error_413", ModelRequestError, False, "answered 413"),
        ("error_429", ModelOverloaded, True, "answered 429"),
        ("error_500", ModelUnavailable, True, "answered 500"),
        ("error_529", ModelOverloaded, True, "verloaded"),
        ("overloaded_in_stream", ModelOverloaded, True, "verloaded"),
        ("broken", ModelUnavailable, True, "ended before the answer was complete"),
    ],
)
def test_failures(
    api: HostedApi,
    name: str,
    kind: type[ModelError],
    retryable: bool,
    words: str,
    endpoints: EndpointServer,
) -> None:
    with pytest.raises(kind) as raised:
        ask(api, endpoints, recorded(api, name), request())
    error = raised.value
    assert type(error) is kind
    assert (error.retryable, words in str(error)) == (retryable, True), str(error)
    if name == "error_429":
        assert getattr(error, "retry_after_s", None) == 17
    if name == "error_401":
        assert "give the model an api_key_env" in str(error)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(list(REQUESTS)), cut=st.integers(1, 400), of=st.sampled_from([*APIS]))
def test_an_answer_does_not_depend_on_how_its_bytes_are_cut(
    name: str, cut: int, of: str, endpoints: EndpointServer
) -> None:
    api = APIS[of]
    options = sampled(api) if name == "text" else {}
    script = recorded(api, name, cut=cut)
    *_, last = ask(api, endpoints, script, REQUESTS[name], options=options)[1]
    assert isinstance(last, Completion)
    found = replace(last.usage, reasoning_tokens=0)
    assert (last.text, found) == (TEXTS[name], replace(USAGES[name], reasoning_tokens=0))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), of=st.sampled_from([*APIS]))
def test_a_damaged_answer_is_an_error_of_the_model_or_an_answer(
    data: st.DataObject, of: str, endpoints: EndpointServer
) -> None:
    api = APIS[of]
    script = recorded(api, data.draw(st.sampled_from(["text", "parallel_tools", "thinking"])))
    body = script.plain or ""
    values = list(re.finditer(r'(?<=: )("[^"]*"|\d+|null|\[|true)', body))
    place = data.draw(st.sampled_from(values))
    junk = data.draw(st.sampled_from(["7", '"x"', "null", "[]", "{}", "[1]", "true", "", "\x00"]))
    damaged = body[: place.start()] + junk + body[place.end() :]
    with suppress(ModelError):  # any other error is a bug
        *_, last = ask(api, endpoints, replace(script, plain=damaged), request(tools=TOOLS))[1]
        assert isinstance(last, Completion)
        assert isinstance(last.text, str)
        for call in last.tool_calls:
            assert {type(call.id), type(call.name), type(call.arguments)} == {str}


def test_no_exchange_holds_a_key() -> None:
    for file in RECORDED.rglob("*.*"):
        assert not re.search(r"sk-|AIza|api[-_]key:|authorization:", file.read_text("utf-8"))


def test_a_thought_that_the_api_does_not_count_has_no_number() -> None:
    """Not a number of streamed pieces, and not 0."""
    request = ModelRequest((Message("user", "?"),))
    plain, thinking = (ProviderAnswer(request, "m", None, 99) for _ in range(2))
    for answer in (plain, thinking):
        answer.completion_tokens = 9
        answer.text("Yes.")
    thinking.thought("Hm.")
    assert (plain.usage.reasoning_tokens, thinking.usage.reasoning_tokens) == (0, None)
    thinking.reasoning_tokens = 4
    assert thinking.usage.reasoning_tokens == 4
    assert (thinking.usage + plain.usage).reasoning_tokens == 4
    assert (thinking.usage + replace(plain.usage, reasoning_tokens=None)).reasoning_tokens is None
