"""An answer that broke off goes on in a later part of a run, and comes to what it would have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from weft.core.calls import CallEvent
from weft.core.ids import NodeId, RunId
from weft.core.ports import ModelClient, ModelEvent, ModelRequest, Sampling, TextDelta
from weft.core.values import Completion, Message
from weft.durability.calls import CallLog, RecordingClient
from weft.engine.scheduler.effects import CALL_SITE, CallSite
from weft.serving.local import LocalModel, LocalOptions

TOKENS = 16


@pytest.fixture(autouse=True)
def _place() -> Iterator[None]:
    token = CALL_SITE.set(CallSite(NodeId("write"), 1))
    yield
    CALL_SITE.reset(token)


def asking(text: str) -> ModelRequest:
    greedy = Sampling(max_tokens=TOKENS, temperature=0)
    return ModelRequest((Message("user", text),), sampling=greedy, extra={"ignore_eos": True})


async def cut_off(client: ModelClient, request: ModelRequest, pieces: int) -> list[CallEvent]:
    """The record of a part that ends when so many pieces have come."""
    events: list[CallEvent] = []
    async with aclosing(RecordingClient(client, "m", log(events)).generate(request)) as stream:
        for _ in range(pieces):
            await anext(stream)
    return events


def log(
    events: list[CallEvent], past: Sequence[CallEvent] = (), said: list[str] | None = None
) -> CallLog:
    async def write(event: CallEvent, durable: bool) -> None:
        events.append(event)

    def tell(_: NodeId, text: str) -> None:
        if said is not None:
            said.append(text)

    return CallLog(RunId("run"), lambda: 0.0, write, past=past, log=tell)


async def events_of(client: ModelClient, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(client.generate(request)) as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("text", ["the quick brown fox", "Ünï cödé — 漢字 🎉"])
def test_greedy_text_is_that_of_an_answer_that_never_broke_off(tiny_path: Path, text: str) -> None:
    """Random weights write half characters and odd merges; where it breaks makes no difference."""

    async def main() -> None:
        local = LocalModel(tiny_path, LocalOptions(dtype="float32", threads=1))
        async with aclosing(local):
            request = asking(text)
            *there, whole = await events_of(local, request)
            assert isinstance(whole, Completion)
            said: list[str] = []
            for pieces in range(1, len(there) + 1):
                past = await cut_off(local, request, pieces)
                client = RecordingClient(local, "m", log([], past, said))
                *events, answer = await events_of(client, request)
                assert isinstance(answer, Completion)
                assert (answer.text, answer.token_ids) == (whole.text, whole.token_ids)
                assert answer.finish_reason == whole.finish_reason
                assert answer.usage.completion_tokens == whole.usage.completion_tokens
                deltas = [event for event in events if isinstance(event, TextDelta)]
                assert "".join(delta.text for delta in deltas) == whole.text
            # The others are asked for again: they have no text yet, or a special token is in it.
            assert len(said) >= len(there) // 2

    asyncio.run(main())
