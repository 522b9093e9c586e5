"""`/tokenize` and every request carry the same variables of the chat template, by every way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

import weft
from tests.serving.gateway.gateway_server import house
from tests.serving.openai.scripted import Endpoint, EndpointServer, Json, Script, Tokenizer, says
from weft.errors import ModelRequestError
from weft.serve import Fleet, ModelRequest, OpenAIModel
from weft.serving.gateway import ServedModel

SETTINGS = {"enable_thinking": True, "language": "en"}
OFF = {"enable_thinking": False}
BOTH = {"enable_thinking": False, "language": "en"}
HI = (weft.Message("user", "hi"),)
Model = OpenAIModel | Fleet


@dataclass(frozen=True)
class Recorder(Tokenizer):
    """Remembers the conversations that it was to tokenize."""

    chats: list[Json] = field(default_factory=list)

    def answer(self, path: str, body: Json) -> Script | None:
        if "messages" in body:
            self.chats.append(body)
        return super().answer(path, body)


def asked(
    endpoints: EndpointServer,
    ask: Callable[[Model], Awaitable[object]],
    *,
    fleet: bool = False,
    extra_body: dict[str, Any] | None = None,
) -> tuple[Endpoint, list[Json]]:
    """The endpoint after `ask`, and the conversations that it tokenized."""
    tokenizer = Recorder()
    endpoint = endpoints.add(says("So it is 42."), tokenizer=tokenizer)
    settings = {"chat_template_kwargs": SETTINGS} if extra_body is None else extra_body

    async def main() -> None:
        client: Model = OpenAIModel(endpoint.base_url, "m", extra_body=settings)
        async with aclosing(Fleet([client]) if fleet else client) as model:
            await ask(model)

    asyncio.run(main())
    return endpoint, tokenizer.chats


async def answer(model: Model, **fields: Any) -> None:
    async with aclosing(model.generate(ModelRequest(HI, **fields))) as stream:
        async for _ in stream:
            pass


@pytest.mark.parametrize("fleet", [False, True])
def test_the_settings_are_in_chats_and_in_what_is_tokenized(
    endpoints: EndpointServer, fleet: bool
) -> None:
    async def ask(model: Model) -> None:
        await answer(model)
        await model.encode_chat(HI)

    endpoint, chats = asked(endpoints, ask, fleet=fleet)
    assert [body["chat_template_kwargs"] for body in endpoint.requests] == [SETTINGS]
    assert [body["chat_template_kwargs"] for body in chats] == [SETTINGS]


@pytest.mark.parametrize("fleet", [False, True])
def test_a_request_adds_to_the_settings_and_wins(endpoints: EndpointServer, fleet: bool) -> None:
    async def ask(model: Model) -> None:
        await answer(model, extra={"chat_template_kwargs": OFF})
        await model.encode_chat(HI, chat_template_kwargs=OFF)

    endpoint, chats = asked(endpoints, ask, fleet=fleet)
    assert [body["chat_template_kwargs"] for body in endpoint.requests] == [BOTH]
    assert [body["chat_template_kwargs"] for body in chats] == [BOTH]


def test_without_any_nothing_is_sent(endpoints: EndpointServer) -> None:
    async def ask(model: Model) -> None:
        await answer(model)
        await model.encode_chat(HI)

    endpoint, chats = asked(endpoints, ask, extra_body={})
    assert all("chat_template_kwargs" not in body for body in (*endpoint.requests, *chats))


def test_a_template_of_the_settings_is_the_one_that_tokenizes(endpoints: EndpointServer) -> None:
    template = "{{ messages }}"
    endpoint, chats = asked(
        endpoints, lambda model: model.encode_chat(HI), extra_body={"chat_template": template}
    )
    assert [body["chat_template"] for body in chats] == [template]
    assert not endpoint.requests


@pytest.mark.parametrize("wrong", [[1], "off", {1: 2}])
def test_what_is_no_mapping_is_refused(endpoints: EndpointServer, wrong: object) -> None:
    async def ask(model: Model) -> None:
        await answer(model, extra={"chat_template_kwargs": wrong})

    with pytest.raises(ModelRequestError, match="is a mapping of names") as caught:
        asked(endpoints, ask)
    assert "enable_thinking" in caught.value.hint


@pytest.mark.parametrize("fleet", [False, True])
@pytest.mark.parametrize("strategy", ["direct", "skeleton", "threadweaver", "a2r", "self-refine"])
def test_every_prompt_of_a_strategy_has_them(
    endpoints: EndpointServer, strategy: str, fleet: bool
) -> None:
    options = weft.ThinkOptions(
        width=2, max_tokens=40, extra_body={"chat_template_kwargs": OFF}, reasoning_effort="low"
    )

    async def ask(model: Model) -> None:
        await weft.think("Why?", strategy=strategy, model=model, options=options)

    endpoint, chats = asked(endpoints, ask, fleet=fleet)
    assert endpoint.requests
    assert chats
    tokenized = {**BOTH, "reasoning_effort": "low"}
    assert all(body["chat_template_kwargs"] == tokenized for body in chats)
    assert all(body["chat_template_kwargs"] == BOTH for body in endpoint.requests)


@pytest.mark.parametrize("fleet", [False, True])
def test_the_gateway_passes_those_of_its_caller_on(endpoints: EndpointServer, fleet: bool) -> None:
    async def ask(model: Model) -> None:
        async with house(ServedModel("fake", model)) as gateway:
            reply = await gateway.chat(chat_template_kwargs=OFF)
        assert reply.status_code == 200, reply.text

    endpoint, _ = asked(endpoints, ask, fleet=fleet)
    assert [body["chat_template_kwargs"] for body in endpoint.requests] == [BOTH]
