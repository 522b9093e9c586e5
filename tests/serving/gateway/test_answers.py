"""What comes back: whole answers, streams, choices, tools; and what happens when it does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest

from tests.serving.gateway.gateway_server import HELLO, Held, House, says, until, with_house
from weft.core.errors import ModelOverloaded, ModelRequestError, ModelUnavailable
from weft.core.ports import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import Completion, ToolCall, Usage
from weft.serving.gateway import ServedModel
from weft.testing import FakeModel, Reply


class Player:
    """A model that plays back events; an exception among them is raised."""

    def __init__(self, *events: ModelEvent | Exception | float, model: str = "fake") -> None:
        self.model = model
        self.events = events
        self.asked: list[ModelRequest] = []

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(request)
        for event in self.events:
            if isinstance(event, float):
                await asyncio.sleep(event)
            elif isinstance(event, Exception):
                raise event
            else:
                yield event

    async def aclose(self) -> None:
        """Nothing is open."""


async def lines(house: House, **fields: Any) -> list[str]:
    answer = await house.chat(stream=True, **fields)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    return [line for line in answer.text.split("\n") if line]


async def chunks(house: House, **fields: Any) -> list[dict[str, Any]]:
    *said, last = await lines(house, **fields)
    assert last == "data: [DONE]"
    told = [line for line in said if not line.startswith(":")]  # a slow machine is silent meanwhile
    return [json.loads(line.removeprefix("data: ")) for line in told]


USAGE = Usage(7, 5, cached_tokens=2, requests=1)
CALLS = (ToolCall("id-1", "add", '{"a": 1}'), ToolCall("id-2", "add", "{}"))
EVERYTHING = (
    Prefilled((1, 2)),
    ReasoningDelta("Let me"),
    ReasoningDelta(" see."),
    TextDelta("Ünï"),
    TextDelta(""),
    TextDelta(" 🎉"),
    ToolCallDelta(0, '{"a"', "id-1", "add"),
    ToolCallDelta(0, ": 1}"),
    ToolCallDelta(1, "{}", "id-2", "add"),
    Completion("Ünï 🎉", "tool_calls", CALLS, usage=USAGE, reasoning="Let me see."),
)


def test_a_thought_that_nobody_counted_has_no_number() -> None:
    async def body(house: House) -> None:
        spent = (await house.chat()).json()["usage"]
        assert spent["completion_tokens"] == 9
        assert "completion_tokens_details" not in spent

    last = Completion("Yes.", reasoning="Hm.", usage=Usage(7, 9, reasoning_tokens=None))
    with_house(body, Player(last))


def test_a_whole_answer_holds_everything() -> None:
    async def body(house: House) -> None:
        answer = (await house.chat()).json()
        assert answer["object"] == "chat.completion"
        assert answer["model"] == "fake"
        assert answer["usage"] == {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
        (choice,) = answer["choices"]
        assert (choice["index"], choice["finish_reason"]) == (0, "tool_calls")
        message = choice["message"]
        assert message["content"] == "Ünï 🎉"
        assert message["reasoning_content"] == "Let me see."
        assert [call["id"] for call in message["tool_calls"]] == ["id-1", "id-2"]
        assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}

    with_house(body, Player(*EVERYTHING))


def test_a_stream_says_the_same_in_pieces() -> None:
    async def body(house: House) -> None:
        said = await chunks(house)
        assert {chunk["object"] for chunk in said} == {"chat.completion.chunk"}
        assert len({chunk["id"] for chunk in said}) == 1
        deltas = [chunk["choices"][0]["delta"] for chunk in said]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert [d["reasoning_content"] for d in deltas if "reasoning_content" in d] == [
            "Let me",
            " see.",
        ]
        assert [d["content"] for d in deltas if "content" in d] == ["", "Ünï", " 🎉"]
        assert [d["tool_calls"][0] for d in deltas if "tool_calls" in d] == [
            {
                "index": 0,
                "id": "id-1",
                "type": "function",
                "function": {"name": "add", "arguments": '{"a"'},
            },
            {"index": 0, "function": {"arguments": ": 1}"}},
            {
                "index": 1,
                "id": "id-2",
                "type": "function",
                "function": {"name": "add", "arguments": "{}"},
            },
        ]
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in said]
        assert reasons == [None] * (len(said) - 1) + ["tool_calls"]
        assert all("usage" not in chunk for chunk in said)

    with_house(body, Player(*EVERYTHING))


@pytest.mark.parametrize("stop", [7, "END"])
def test_what_ended_an_answer_is_told_as_vllm_tells_it(stop: int | str) -> None:
    async def body(house: House) -> None:
        [choice] = (await house.chat(stop_token_ids=[7])).json()["choices"]
        assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
        *said, last = await chunks(house, stop_token_ids=[7])
        assert last["choices"][0]["stop_reason"] == stop
        assert not any("stop_reason" in chunk["choices"][0] for chunk in said)

    with_house(body, Player(TextDelta("a"), Completion("a", stop=stop)))


def test_usage_comes_last_when_asked_for() -> None:
    async def body(house: House) -> None:
        *said, last = await chunks(house, stream_options={"include_usage": True})
        assert all(chunk["usage"] is None for chunk in said)
        assert last["choices"] == []
        assert last["usage"]["total_tokens"] == 12

    with_house(body, Player(*EVERYTHING))


def test_a_text_that_utf8_cannot_hold_does_no_harm() -> None:
    async def body(house: House) -> None:
        said = await chunks(house)
        assert said[1]["choices"][0]["delta"]["content"] == "a?b"
        assert (await house.chat()).json()["choices"][0]["message"]["content"] == "a?b"

    with_house(body, Player(TextDelta("a\ud800b"), Completion("a\ud800b")))


def test_choices_come_side_by_side() -> None:
    model = FakeModel(lambda request: Reply(f"seed {request.sampling.seed}", first_token_s=0.02))

    async def body(house: House) -> None:
        whole = (await house.chat(n=3, seed=4)).json()
        assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
        texts = [choice["message"]["content"] for choice in whole["choices"]]
        assert texts == ["seed 4", "seed 5", "seed 6"]
        assert whole["usage"]["completion_tokens"] == 6
        said = [chunk["choices"][0] for chunk in await chunks(house, n=3, seed=4)]
        for index in range(3):
            mine = [piece for piece in said if piece["index"] == index]
            assert "".join(p["delta"].get("content", "") for p in mine) == texts[index]
            assert mine[0]["delta"]["role"] == "assistant"
            assert mine[-1]["finish_reason"] == "stop"
        assert (await house.chat(n=17)).status_code == 400

    with_house(body, model)


def test_one_choice_that_fails_ends_the_others() -> None:
    def script(request: ModelRequest) -> Reply:
        if request.sampling.seed == 1:
            return Reply(error=ModelRequestError("too long"))
        return Reply("never said", first_token_s=60)

    model = FakeModel(script)

    async def body(house: House) -> None:
        assert (await house.chat(n=3, seed=0)).status_code == 400
        assert (model.running, model.cancelled) == (0, 2)

    with_house(body, model)


@pytest.mark.parametrize("stream", [False, True])
def test_what_fails_before_the_first_word_has_a_status(stream: bool) -> None:
    async def body(house: House) -> None:
        busy = await house.chat(stream=stream)
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "7")
        error = busy.json()["error"]
        assert (error["type"], error["code"]) == ("rate_limit_error", "overloaded")

    with_house(body, Player(ModelOverloaded("busy", retry_after_s=6.5)))


def test_what_fails_in_the_middle_of_a_stream_is_its_last_event() -> None:
    player = Player(TextDelta("Well"), ModelUnavailable("http://10.0.0.1 broke"))

    async def body(house: House) -> None:
        *_, text, last = await lines(house)
        assert '"Well"' in text
        error = json.loads(last.removeprefix("data: "))["error"]
        assert error["code"] == "unavailable"
        assert "10.0.0.1" not in error["message"]
        assert "10.0.0.1" in (await house.told(1))[0].error
        client = await house.openai()
        stream = await client.chat.completions.create(model="fake", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in stream:
                pass
        await house.told(2)
        counted = await house.counted()
        assert 'weft_gateway_broken_streams_total{model="fake"} 2.0' in counted

    with_house(body, player)


@pytest.mark.parametrize("reason", ["cancelled", "error"])
def test_an_answer_that_was_cut_off_is_no_answer(reason: Any) -> None:
    async def body(house: House) -> None:
        assert (await house.chat()).status_code == 502

    with_house(body, Player(Completion("half", reason)))


def test_a_model_that_ends_without_an_answer_or_with_a_bug() -> None:
    async def body(house: House) -> None:
        assert (await house.chat(model="silent")).status_code == 502
        failed = await house.chat(model="buggy")
        assert failed.status_code == 500
        assert failed.headers["x-should-retry"] == "false"
        assert "secret" not in failed.text
        assert "secret" in (await house.told(2))[1].error

    with_house(body, Player(model="silent"), Player(KeyError("secret"), model="buggy"))


def test_silence_is_filled_with_comments_that_clients_ignore() -> None:
    player = Player(0.1, TextDelta("Hi"), 0.1, Completion("Hi"))

    async def body(house: House) -> None:
        said = await lines(house)
        assert said[0] == ": keep-alive"
        assert said.count(": keep-alive") >= 2
        client = await house.openai()
        stream = await client.chat.completions.create(model="fake", messages=HELLO, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(texts) == "Hi"

    with_house(body, player, keep_alive_s=0.02)


def test_time_runs_out() -> None:
    model = FakeModel([Reply("late", first_token_s=60)])
    player = Player(Completion("x"), model="quick")

    async def body(house: House) -> None:
        late = await house.chat(headers={"x-weft-timeout-ms": "20"})
        assert late.status_code == 504
        assert late.headers["x-should-retry"] == "false"
        assert model.running == 0
        await house.chat(model="quick", headers={"x-weft-timeout-ms": "15000"})
        await house.chat(model="quick", headers={"x-weft-timeout-ms": "999999999"})
        await house.chat(model="quick")
        assert [request.timeout_s for request in player.asked] == [15, 30, 30]
        for wrong in ("", "0", "-5", "1.5", "soon", "9" * 40):
            answer = await house.chat(headers={"x-weft-timeout-ms": wrong})
            assert answer.status_code == 400

    with_house(body, model, player, timeout_s=30.0)


def test_further_fields_reach_models_that_know_them() -> None:
    knows, other = Player(Completion("x")), Player(Completion("x"), model="other")

    async def body(house: House) -> None:
        fields = {"inputs": {"a": 1}, "frequency_penalty": 1}
        assert (await house.chat(**fields)).status_code == 200
        await house.chat(stream=True)
        assert [request.extra for request in knows.asked] == [
            {"inputs": {"a": 1}, "stream": False, "frequency_penalty": 1},
            {"stream": True},
        ]
        assert (await house.chat(model="other", inputs={})).status_code == 400
        assert (await house.chat(model="other", **fields)).status_code == 400
        assert (await house.chat(model="other", user="me", store=True)).status_code == 200
        assert other.asked[0].extra == {}

    fields = frozenset({"inputs", "stream", "frequency_penalty"})
    with_house(body, ServedModel("fake", knows, fields), other)


def test_places_bound_what_runs_and_what_waits() -> None:
    model = Held()

    async def body(house: House) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(house.chat()) for _ in range(6)]
            await until(lambda: sum(task.done() for task in tasks) == 2)  # they are refused
            assert model.running == 2
            model.go.set()
        statuses = sorted(task.result().status_code for task in tasks)
        assert statuses == [200] * 4 + [429] * 2
        assert [t.result() for t in tasks if "retry-after" in t.result().headers]

    with_house(body, model, max_concurrent=2, max_waiting=2)


@pytest.mark.parametrize("stream", [False, True])
def test_hanging_up_cancels_what_runs_and_what_waits(stream: bool) -> None:
    model = FakeModel([Reply("never", first_token_s=60)])

    async def body(house: House) -> None:
        tasks = [asyncio.create_task(house.chat(stream=stream)) for _ in range(3)]
        await until(lambda: model.running == 1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await house.told(3)
        assert (model.running, model.cancelled) == (0, 1)
        assert all(exchange.gone for exchange in house.exchanges)
        counted = await house.counted()
        assert 'weft_gateway_disconnects_total{model="fake"} 3.0' in counted
        assert "weft_gateway_running 0.0" in counted

    with_house(body, model, max_concurrent=1)


def test_a_model_with_a_slash_in_its_name() -> None:
    async def body(house: House) -> None:
        client = await house.openai()
        assert (await client.models.retrieve("org/model")).id == "org/model"

    with_house(body, ServedModel("org/model", says()))
