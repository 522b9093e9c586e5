"""The client against a real vLLM: the suite for any model, and what only such a server shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from tests.conformance.model_client import ModelClientConformance, asking, events_of
from tests.live_vllm import ADAPTER, CONTEXT, NAME, LiveVllm
from weft.core.errors import ModelNotFound, ModelRequestError, ModelTimeout
from weft.core.ports import (
    Capabilities,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Prefilled,
    Sampling,
    ToolCallDelta,
    complete,
)
from weft.core.values import Completion, ToolSpec
from weft.serving.openai import OpenAIModel

pytestmark = pytest.mark.vllm

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": NUMBERS,
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
ENDLESS: dict[str, Any] = {"ignore_eos": True}
LONG = 1900
"""Tokens of an answer that takes most of a minute, which a test may be held up for a part of."""


class TestVllmClient(ModelClientConformance):
    live: LiveVllm

    @pytest.fixture(autouse=True)
    def _server(self, live_vllm: LiveVllm) -> None:
        self.live = live_vllm

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ModelClient]:
        async with aclosing(OpenAIModel(self.live.base_url, NAME)) as client:
            yield client

    def long(self) -> ModelRequest:
        return asking(sampling=Sampling(max_tokens=LONG, temperature=0), extra=ENDLESS)

    def running(self) -> int:
        reading = self.live.metrics()
        return reading.running + reading.waiting


def with_client(
    live: LiveVllm, body: Callable[[OpenAIModel], Awaitable[None]], **options: Any
) -> None:
    async def main() -> None:
        async with aclosing(OpenAIModel(live.base_url, NAME, **options)) as client:
            await body(client)

    asyncio.run(main())


def heard(live: LiveVllm, request: ModelRequest, **options: Any) -> list[ModelEvent]:
    events: list[ModelEvent] = []

    async def body(client: OpenAIModel) -> None:
        events.extend(await events_of(client, request))

    with_client(live, body, **options)
    return events


def ask(live: LiveVllm, request: ModelRequest, **options: Any) -> Completion:
    last = heard(live, request, **options)[-1]
    assert isinstance(last, Completion)
    return last


async def settled(live: LiveVllm) -> None:
    async with asyncio.timeout(240):
        while live.metrics().running:
            await asyncio.sleep(0.05)


def test_what_the_server_can_do_is_found_out(live_vllm: LiveVllm) -> None:
    async def body(client: OpenAIModel) -> None:
        found = await client.capabilities()
        assert {"min_p", "ignore_eos", "chat_template_kwargs"} <= {*found.extra_fields}
        assert replace(found, extra_fields=()) == Capabilities(
            structured_output=True,
            tools=True,
            logprobs=True,
            token_ids=True,
            prompt_token_ids=True,
            prefix_reuse=True,
            prompt_logprobs=True,
            metrics=True,
            grammar=True,
            continuation=True,
            stop_token_ids=True,
            top_logprobs=20,
            adapters=(ADAPTER,),
            max_context_tokens=CONTEXT,
            media=("image", "audio"),
            thinking=True,
        )

    with_client(live_vllm, body)


def test_the_prompts_ids_come_first_and_give_the_same_answer(live_vllm: LiveVllm) -> None:
    first, *_, chat = heard(live_vllm, asking())
    assert isinstance(first, Prefilled)
    assert isinstance(chat, Completion)
    assert len(first.prompt_token_ids) == chat.usage.prompt_tokens
    sampling = Sampling(max_tokens=6, temperature=0)
    again = ModelRequest(prompt_token_ids=first.prompt_token_ids, sampling=sampling)
    told, *_, raw = heard(live_vllm, again)
    assert told == first
    assert isinstance(raw, Completion)
    assert (raw.text, raw.token_ids) == (chat.text, chat.token_ids)


def test_every_token_has_its_id_and_its_logprob(live_vllm: LiveVllm) -> None:
    answer = ask(live_vllm, asking("Write 漢字 and 🎉.", logprobs=True))
    assert len(answer.token_ids) == len(answer.logprobs) == answer.usage.completion_tokens


def test_a_required_call_fits_its_schema(live_vllm: LiveVllm) -> None:
    sampling = Sampling(max_tokens=200, temperature=0)
    request = asking(
        "Add 2 and 3.", sampling=sampling, tools=(ADD,), tool_choice="required", logprobs=True
    )
    *events, answer = heard(live_vllm, request)
    assert isinstance(answer, Completion)
    assert answer.finish_reason == "tool_calls"
    assert all(call.name == "add" for call in answer.tool_calls)
    jsonschema.validate(json.loads(answer.tool_calls[0].arguments), dict(ADD.parameters))
    deltas = [event for event in events if isinstance(event, ToolCallDelta) and event.index == 0]
    assert len(deltas) > 1
    assert "".join(delta.arguments for delta in deltas) == answer.tool_calls[0].arguments
    assert len(answer.token_ids) == len(answer.logprobs) == answer.usage.completion_tokens


def test_calls_in_the_text_are_found_where_the_server_looks_for_none(live_vllm: LiveVllm) -> None:
    spelled = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'
    regex = f"Well\\. {spelled}".replace("{", "\\{").replace("}", "\\}")
    request = asking(
        "Add 2 and 3.",
        sampling=Sampling(max_tokens=200, temperature=0),
        tools=(ADD,),
        extra={"structured_outputs": {"regex": regex}},
    )
    first, *_, answer = heard(live_vllm, request, tool_format="hermes")
    assert isinstance(answer, Completion)
    assert answer.text == "Well."
    assert [(c.name, json.loads(c.arguments)) for c in answer.tool_calls] == [
        ("add", {"a": 2, "b": 3})
    ]
    assert answer.finish_reason == "tool_calls"
    assert len(answer.token_ids) == answer.usage.completion_tokens
    # The template of this model leaves out tools that the server is told of: ours are in there.
    assert isinstance(first, Prefilled)
    assert len(first.prompt_token_ids) > 100


def test_reasoning_in_the_text_is_found(live_vllm: LiveVllm) -> None:
    extra = {"structured_outputs": {"regex": "<think>[a-z ]{8,20}</think>\\n\\n[a-z]{3,9}"}}
    sampling = Sampling(max_tokens=60, temperature=0)
    answer = ask(live_vllm, asking(sampling=sampling, extra=extra), reasoning="think")
    assert 8 <= len(answer.reasoning) <= 20
    assert 3 <= len(answer.text) <= 9
    assert len(answer.token_ids) == answer.usage.completion_tokens


def test_a_seed_repeats_a_drawn_answer(live_vllm: LiveVllm) -> None:
    def drawn(seed: int) -> str:
        sampling = Sampling(max_tokens=12, temperature=1.5, seed=seed)
        return ask(live_vllm, asking(sampling=sampling)).text

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(1, 5)}) > 1


def test_a_priority_is_taken(live_vllm: LiveVllm) -> None:
    answer = ask(live_vllm, asking(priority=7), priority=True)
    assert answer.usage.completion_tokens


def test_an_adapter_changes_the_answer(live_vllm: LiveVllm) -> None:
    plain, adapted = ask(live_vllm, asking()), ask(live_vllm, asking(adapter=ADAPTER))
    assert (plain.model, adapted.model) == (NAME, ADAPTER)
    assert plain.text != adapted.text


def test_time_that_runs_out_stops_the_server(live_vllm: LiveVllm) -> None:
    async def body(client: OpenAIModel) -> None:
        await client.capabilities()
        sampling = Sampling(max_tokens=LONG, temperature=0)
        request = asking(sampling=sampling, timeout_s=1.0, extra=ENDLESS)
        with pytest.raises(ModelTimeout):
            await complete(client, request)
        await settled(live_vllm)
        before = live_vllm.metrics().generation_tokens
        await complete(client, asking(sampling=Sampling(max_tokens=1)))
        assert live_vllm.metrics().generation_tokens == before + 1

    with_client(live_vllm, body)


def test_cancelling_half_leaves_the_other_half_running(live_vllm: LiveVllm) -> None:
    async def body(client: OpenAIModel) -> None:
        begun = [asyncio.Event() for _ in range(8)]
        tasks = [
            asyncio.ensure_future(
                complete(
                    client,
                    asking(
                        f"Count from {number}.",
                        sampling=Sampling(max_tokens=120 if number % 2 else LONG, temperature=0),
                        extra=ENDLESS,
                    ),
                    lambda _, event=event: event.set(),  # type: ignore[misc]
                )
            )
            for number, event in enumerate(begun)
        ]
        for event in begun:
            await event.wait()
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, False] * 4
        assert all(task.result().usage.completion_tokens == 120 for task in tasks[1::2])
        await settled(live_vllm)

    before = live_vllm.metrics().generation_tokens
    with_client(live_vllm, body)
    written = live_vllm.metrics().generation_tokens - before
    assert 4 * 120 <= written < 4 * 120 + 4 * LONG


def test_the_client_reads_what_the_server_counts(live_vllm: LiveVllm) -> None:
    async def body(client: OpenAIModel) -> None:
        before = await client.metrics()
        answer = await complete(client, asking())
        await settled(live_vllm)
        after = await client.metrics()
        assert after.running == after.waiting == 0
        assert after.prompt_tokens - before.prompt_tokens == answer.usage.prompt_tokens
        written = after.generation_tokens - before.generation_tokens
        assert written == answer.usage.completion_tokens
        assert after == live_vllm.metrics()

    with_client(live_vllm, body)


def test_what_the_server_refuses_says_why(live_vllm: LiveVllm) -> None:
    with pytest.raises(ModelRequestError, match="context length"):
        ask(live_vllm, asking("word " * 3 * CONTEXT))
    with pytest.raises(ModelNotFound, match=NAME):
        asyncio.run(_ask_for("nobody", live_vllm))


async def _ask_for(model: str, live: LiveVllm) -> None:
    async with aclosing(OpenAIModel(live.base_url, model)) as client:
        await complete(client, asking())
