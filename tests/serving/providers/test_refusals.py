"""What the hosted APIs cannot honour is refused by its name, and nothing is sent."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import fields
from typing import Any

import pytest

from tests.serving.openai.scripted import EndpointServer, Json
from tests.serving.providers.scripted import (
    ANTHROPIC,
    APIS,
    GEMINI,
    OLDER,
    HostedApi,
    anthropic_page,
)
from weft.core.content import Audio, File, Image
from weft.core.errors import CapabilityError, ModelRequestError
from weft.core.ports import Placed
from weft.serve import Capabilities, Lossy, Message, ModelRequest, Sampling, complete
from weft.testing import Reply

USER = Message("user", "Hello")
WAV = b"RIFF\0\0\0\0WAVEfmt "
BMP = b"BM" + b"\0" * 30
PDF = b"%PDF-1.7"


@pytest.fixture(params=list(APIS))
def api(request: pytest.FixtureRequest) -> HostedApi:
    return APIS[request.param]


def sent(
    api: HostedApi, endpoints: EndpointServer, asked: ModelRequest, page: Any = None, **options: Any
) -> list[Json]:
    """The bodies that the API gets for a request."""
    endpoint = api.endpoint(endpoints, lambda body: api.plays(Reply("Hi."), body), page)

    async def main() -> None:
        async with aclosing(api.connect(endpoint, options=options)) as client:
            await complete(client, asked)

    try:
        asyncio.run(main())
    except (CapabilityError, ModelRequestError):
        assert not endpoint.requests
        raise
    return endpoint.requests


def sampling(**settings: Any) -> ModelRequest:
    return ModelRequest((USER,), sampling=Sampling(max_tokens=8, **settings))


BOTH = {
    "min_p": sampling(min_p=0.1),
    "repetition_penalty": sampling(repetition_penalty=1.2),
    "logit_bias": sampling(logit_bias={"7": 1.0}),
    "stop_token_ids": sampling(stop_token_ids=(7,)),
    "reasoning_effort": sampling(reasoning_effort="tremendous"),
    "grammar": ModelRequest((USER,), grammar="start: /x/"),
    "logprobs": ModelRequest((USER,), logprobs=True),
    "adapter": ModelRequest((USER,), adapter="lora"),
    "decode": ModelRequest((USER,), decode=Lossy("medusa")),
    "extra: heat": ModelRequest((USER,), extra={"heat": 3}),
    "prompt_token_ids": ModelRequest(prompt_token_ids=(1, 2)),
    "placement": ModelRequest((), (1, 2), placement=(Placed(2, 0),)),
    "going on": ModelRequest((USER, Message("assistant", "Once"))),
    "file": ModelRequest((Message.of("user", ["?", File.from_bytes(b"\0\1\2")]),)),
}


@pytest.mark.parametrize("name", list(BOTH))
def test_of_both(api: HostedApi, name: str, endpoints: EndpointServer) -> None:
    with pytest.raises(CapabilityError, match=name.replace("placement", "prompt_token_ids")):
        sent(api, endpoints, BOTH[name])


def test_every_field_of_a_request_is_honoured_or_refused() -> None:
    """A new field of requests has to be one of these, or clients drop it silently."""
    honoured = {"messages", "sampling", "schema", "tools", "tool_choice", "timeout_s"}
    hints = {"priority", "cache_prefix", "program"}
    refused = {"prompt_token_ids", "placement", "attention", "grammar", "adapter", "decode"}
    refused |= {"logprobs", "top_logprobs", "extra"}
    assert {field.name for field in fields(ModelRequest)} == honoured | hints | refused


OF_ANTHROPIC = {
    "temperature": sampling(temperature=0.7),
    "top_p": sampling(top_p=0.5),
    "top_k": sampling(top_k=5),
    "seed": sampling(seed=1),
    "presence_penalty": sampling(presence_penalty=1.0),
    "frequency_penalty": sampling(frequency_penalty=1.0),
    "stop": sampling(stop=("\n\n",)),
    "free keys": ModelRequest((USER,), schema={"type": "object"}),
    "audio": ModelRequest((Message.of("user", ["?", Audio.from_bytes(WAV)]),)),
    "image/bmp": ModelRequest((Message.of("user", ["?", Image.from_bytes(BMP)]),)),
}
OF_GEMINI = {
    "6 texts as stop": sampling(stop=tuple("abcdef")),
    "role system after": ModelRequest((USER, Message("system", "Be kind."), USER)),
}


@pytest.mark.parametrize("name", list(OF_ANTHROPIC))
def test_of_anthropic(name: str, endpoints: EndpointServer) -> None:
    with pytest.raises(CapabilityError, match=name) as raised:
        sent(ANTHROPIC, endpoints, OF_ANTHROPIC[name])
    if name == "temperature":
        assert "ignore: [temperature]" in str(raised.value)
        assert "temperature 1 is what the model has" in str(raised.value)


@pytest.mark.parametrize("name", list(OF_GEMINI))
def test_of_gemini(name: str, endpoints: EndpointServer) -> None:
    with pytest.raises(CapabilityError, match=name):
        sent(GEMINI, endpoints, OF_GEMINI[name])


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("schema", anthropic_page(structured_outputs={"supported": False})),
        ("image", anthropic_page(image_input={"supported": False})),
    ],
)
def test_what_this_model_cannot_do(name: str, page: Any, endpoints: EndpointServer) -> None:
    png = Image.from_bytes(b"\x89PNG\r\n\x1a\n")
    asked = {
        "schema": ModelRequest((USER,), schema={"type": "integer"}),
        "image": ModelRequest((Message.of("user", ["?", png]),)),
    }[name]
    with pytest.raises(CapabilityError, match=name):
        sent(ANTHROPIC, endpoints, asked, page)
    assert sent(ANTHROPIC, endpoints, asked if name == "image" else ModelRequest((USER,)))


def test_values_that_change_nothing_are_honoured(api: HostedApi, endpoints: EndpointServer) -> None:
    neutral = sampling(min_p=0, repetition_penalty=1, temperature=1, top_p=1)
    (body,) = sent(api, endpoints, neutral)
    assert "min_p" not in str(body)
    assert ("temperature" in str(body)) is (api is GEMINI)


def test_ignored_settings_are_not_sent(endpoints: EndpointServer) -> None:
    asked = sampling(temperature=0.2, top_p=0.5, seed=7)
    (body,) = sent(ANTHROPIC, endpoints, asked, ignore=("temperature", "top_p", "seed"))
    assert body.keys() == {"messages", "max_tokens", "model", "stream"}
    with pytest.raises(CapabilityError, match="seed"):
        sent(ANTHROPIC, endpoints, asked, ignore=("temperature", "top_p"))


def test_the_older_version_samples_and_nothing_else(endpoints: EndpointServer) -> None:
    (body,) = sent(ANTHROPIC, endpoints, sampling(temperature=0.2, top_k=3), **OLDER)
    assert (body["temperature"], body["top_k"]) == (0.2, 3)
    with pytest.raises(CapabilityError, match="presence_penalty"):
        sent(ANTHROPIC, endpoints, sampling(presence_penalty=1.0), **OLDER)


@pytest.mark.parametrize(
    ("options", "effort", "thinking"),
    [
        ({}, None, None),
        ({"thinking": "adaptive"}, None, {"type": "adaptive", "display": "summarized"}),
        ({"thinking": "disabled"}, None, {"type": "disabled"}),
        ({"thinking": "adaptive"}, "none", {"type": "disabled"}),
        (
            {"thinking": 2048},
            None,
            {"type": "enabled", "budget_tokens": 2048, "display": "summarized"},
        ),
    ],
)
def test_thinking_of_claude(
    options: dict[str, Any], effort: str | None, thinking: Json | None, endpoints: EndpointServer
) -> None:
    asked = ModelRequest((USER,), sampling=Sampling(4096, reasoning_effort=effort))
    (body,) = sent(ANTHROPIC, endpoints, asked, **options)
    assert body.get("thinking") == thinking
    assert "output_config" not in body


@pytest.mark.parametrize(
    ("options", "effort", "thinking"),
    [
        ({}, None, {"include_thoughts": True}),
        ({"thinking": "disabled"}, None, {"thinking_budget": 0}),
        ({"thinking": 512}, None, {"include_thoughts": True, "thinking_budget": 512}),
        ({"thinking": 512}, "low", {"include_thoughts": True, "thinking_level": "LOW"}),
        ({}, "none", {"thinking_budget": 0}),
    ],
)
def test_thinking_of_gemini(
    options: dict[str, Any], effort: str | None, thinking: Json, endpoints: EndpointServer
) -> None:
    (body,) = sent(GEMINI, endpoints, sampling(reasoning_effort=effort), **options)
    assert body["generationConfig"]["thinkingConfig"] == thinking


@pytest.mark.parametrize("tokens", [0, 2048])
def test_the_tokens_of_a_thought(api: HostedApi, tokens: int, endpoints: EndpointServer) -> None:
    asked = ModelRequest((USER,), sampling=Sampling(max_tokens=100, thinking_tokens=tokens))
    (body,) = sent(api, endpoints, asked)
    if api is GEMINI:
        config = body["generationConfig"]
        assert config["maxOutputTokens"] == 100 + tokens
        assert config["thinkingConfig"]["thinking_budget"] == tokens
    else:
        assert body["max_tokens"] == 100 + tokens
        assert body["thinking"].get("budget_tokens", 0) == tokens


@pytest.mark.parametrize(
    ("options", "asked", "key", "remedy"),
    [
        ({}, Sampling(100, thinking_tokens=1023), "thinking_tokens: 1023", "1024 or more"),
        ({"thinking": 512}, Sampling(4096), "thinking: 512", "1024 or more"),
        ({"thinking": 2048}, Sampling(2048), "thinking: 2048", "raise max_tokens above 2048"),
    ],
)
def test_a_budget_that_claude_refuses_is_not_sent(
    options: dict[str, Any], asked: Sampling, key: str, remedy: str, endpoints: EndpointServer
) -> None:
    with pytest.raises(CapabilityError, match=f"does not take {key};|does not take {key}:") as seen:
        sent(ANTHROPIC, endpoints, ModelRequest((USER,), sampling=asked), **options)
    assert remedy in str(seen.value.hint)


@pytest.mark.parametrize("thought", [1024, 2047])
def test_the_least_and_the_largest_budget_of_claude(
    thought: int, endpoints: EndpointServer
) -> None:
    asked = ModelRequest((USER,), sampling=Sampling(2048))
    (body,) = sent(ANTHROPIC, endpoints, asked, thinking=thought)
    assert body["thinking"]["budget_tokens"] == thought


def test_a_model_that_cannot_stop_thinking_says_so(endpoints: EndpointServer) -> None:
    types = {"adaptive": {"supported": True}, "disabled": {"supported": False}}
    page = anthropic_page(thinking={"supported": True, "types": types})
    with pytest.raises(CapabilityError, match="does not take thinking: disabled"):
        sent(ANTHROPIC, endpoints, sampling(reasoning_effort="none"), page)


def test_files_are_documents(api: HostedApi, endpoints: EndpointServer) -> None:
    notes = File.from_bytes("Grüße".encode(), name="notes.txt")
    pdf = File.from_bytes(PDF)
    (body,) = sent(api, endpoints, ModelRequest((Message.of("user", ["Read.", notes, pdf]),)))
    assert "application/pdf" in str(body)
    assert ("Grüße" in str(body)) is (api is ANTHROPIC)


def test_a_result_that_answers_no_call_is_refused(endpoints: EndpointServer) -> None:
    asked = ModelRequest((USER, Message("tool", "4", tool_call_id="nobody")))
    with pytest.raises(ModelRequestError, match="'nobody', which is not there"):
        sent(GEMINI, endpoints, asked)


def test_a_conversation_without_content_is_refused(
    api: HostedApi, endpoints: EndpointServer
) -> None:
    with pytest.raises(ModelRequestError, match="no message with content"):
        sent(api, endpoints, ModelRequest((Message("system", "Be kind."), Message("user", ""))))


def test_capabilities_are_those_of_the_page(endpoints: EndpointServer) -> None:
    async def read(api: HostedApi) -> Capabilities:
        async with aclosing(api.connect(api.endpoint(endpoints, api.page))) as client:
            return await client.capabilities()

    claude = asyncio.run(read(ANTHROPIC))
    assert (claude.max_context_tokens, claude.media) == (200000, ("image", "file"))
    gemini = asyncio.run(read(GEMINI))
    assert (gemini.max_context_tokens, gemini.media) == (1048576, ("image", "audio", "file"))
    for each in (claude, gemini):
        assert each.tools
        assert each.structured_output
        assert not any((each.grammar, each.continuation, each.logprobs, each.token_ids))
