"""A run that is cut off while vLLM answers goes on from the tokens that came, and says the same."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.live_vllm import NAME, LiveVllm
from weft.core.calls import CallEvent
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelClient, ModelEvent, ModelRequest, Sampling, TextDelta
from weft.core.values import Completion, Message
from weft.durability.calls import CallLog, RecordingClient
from weft.engine.scheduler.effects import CALL_SITE, CallSite
from weft.serving.openai import OpenAIModel

pytestmark = pytest.mark.vllm


async def events_of(client: ModelClient, request: ModelRequest, most: int) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    async with aclosing(client.generate(request)) as stream:
        async for event in stream:
            events.append(event)
            if len(events) == most:
                return events
    return events


TEXTS = (
    "Name four colours of the rainbow.",
    "Schreib 'Grüße aus München' auf Japanisch.",
    "Count from 995 to 1005.",
    "Write a Python function that adds two numbers.",
    "Say this once more: 🚲🎈 日本語, “ok”…",
    "Why is the sky blue?",
)


@pytest.mark.parametrize("text", TEXTS)  # all of one server: the fixture starts it once
def test_greedy_text_is_that_of_an_undisturbed_answer(live_vllm: LiveVllm, text: str) -> None:
    sampling = Sampling(max_tokens=16, temperature=0)
    request = ModelRequest((Message("user", text),), sampling=sampling)
    said: list[str] = []

    def log(events: list[CallEvent], past: list[CallEvent]) -> CallLog:
        async def write(event: CallEvent, durable: bool) -> None:
            events.append(event)

        def tell(_: NodeId, line: str) -> None:
            said.append(line)

        return CallLog(RunId("run"), lambda: 0.0, write, past=past, log=tell)

    async def main() -> None:
        CALL_SITE.set(CallSite(NodeId("write"), 1))
        async with aclosing(OpenAIModel(live_vllm.base_url, NAME)) as server:
            *there, whole = await events_of(server, request, 999)
            assert isinstance(whole, Completion)
            for pieces in range(2, len(there), 5):
                past: list[CallEvent] = []
                await events_of(RecordingClient(server, "m", log(past, [])), request, pieces)
                client = RecordingClient(server, "m", log([], past))
                *events, answer = await events_of(client, request, 999)
                assert isinstance(answer, Completion)
                assert answer.text == whole.text
                assert answer.usage.completion_tokens == whole.usage.completion_tokens
                deltas = [event for event in events if isinstance(event, TextDelta)]
                assert "".join(delta.text for delta in deltas) == whole.text

    asyncio.run(main())
    assert said
