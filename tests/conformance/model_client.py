"""What every `ModelClient` must do. Subclass, say how to reach a model, and let pytest collect it.

`ModelClientConformance` holds for any model, also one that babbles. `ScriptedModelConformance`
adds what can only be checked where the test decides what the model says.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, get_args

import jsonschema
import pytest

from tests import manual_clock
from weft.core.errors import (
    CapabilityError,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    WeftError,
)
from weft.core.ports import (
    AttentionLayout,
    ConcurrentAttention,
    Delta,
    ModelClient,
    ModelEvent,
    ModelRequest,
    Placed,
    Prefilled,
    ReasoningDelta,
    Sampling,
    TextDelta,
    ToolCallDelta,
    complete,
)
from weft.core.values import Completion, Lossy, Message, ToolCall, ToolSpec, Usage
from weft.testing import Reply

LIMIT = 6
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["answer"],
    "additionalProperties": False,
}

GRAMMAR = """
start: colour (" and " colour){1,2}
colour: "red" | "green"
"""
IN_GRAMMAR = Reply("red and green")


def asking(text: str = "Name some colours.", **fields: Any) -> ModelRequest:
    """A short, greedy request."""
    fields.setdefault("sampling", Sampling(max_tokens=LIMIT, temperature=0))
    return ModelRequest((Message("user", text),), **fields)


async def events_of(client: ModelClient, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(client.generate(request)) as stream:
        return [event async for event in stream]


async def no_tasks_left() -> None:
    """The task of the caller is the only one; what is being torn down gets a moment."""
    for _ in range(12_000):
        if len(asyncio.all_tasks()) == 1:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"tasks left: {asyncio.all_tasks()}")


class ModelClientConformance:
    """The suite for any model."""

    def serving(self) -> AbstractAsyncContextManager[ModelClient]:
        """A client of a running model that can answer at length; closed at the end."""
        raise NotImplementedError

    def running(self) -> int:
        """How many requests the model is working on, seen from where the model runs."""
        raise NotImplementedError

    def long(self) -> ModelRequest:
        """A request whose answer is still being written whenever somebody looks."""
        return asking(sampling=Sampling(max_tokens=200, temperature=0))

    def run(self, body: Callable[[ModelClient], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.serving() as client:
                await body(client)
                await self.idle()
            await no_tasks_left()

        asyncio.run(main())

    async def idle(self) -> None:
        """Wait until the model works on nothing."""
        async with asyncio.timeout(120):
            while self.running():
                await asyncio.sleep(0.002)

    async def busy(self) -> None:
        """Wait until the model is seen to work on one request."""
        async with asyncio.timeout(120):
            while self.running() != 1:
                await asyncio.sleep(0.002)

    def test_it_has_a_name_and_stable_capabilities(self) -> None:
        async def body(client: ModelClient) -> None:
            assert client.model
            assert await client.capabilities() == await client.capabilities()

        self.run(body)

    def test_the_completion_comes_last_and_holds_all_deltas(self) -> None:
        async def body(client: ModelClient) -> None:
            *events, last = await events_of(client, asking())
            assert isinstance(last, Completion)
            assert Prefilled not in map(type, events[1:])
            deltas = [event for event in events if not isinstance(event, Prefilled)]
            texts = [delta for delta in deltas if isinstance(delta, TextDelta)]
            assert len(texts) == len(deltas)
            assert "".join(delta.text for delta in texts) == last.text
            assert tuple(i for delta in texts for i in delta.token_ids) == last.token_ids
            assert last.usage.requests == 1
            assert last.usage.prompt_tokens > 0
            assert 0 < last.usage.completion_tokens <= LIMIT
            assert last.finish_reason in {"stop", "length"}

        self.run(body)

    def test_max_tokens_bounds_the_answer(self) -> None:
        async def body(client: ModelClient) -> None:
            sampling = Sampling(max_tokens=1, temperature=0)
            answer = await complete(client, asking(sampling=sampling))
            assert answer.usage.completion_tokens == 1

        self.run(body)

    def test_greedy_answers_repeat(self) -> None:
        async def body(client: ModelClient) -> None:
            first, second = await complete(client, asking()), await complete(client, asking())
            assert first.text == second.text

        self.run(body)

    def test_closing_the_stream_frees_the_model(self) -> None:
        async def body(client: ModelClient) -> None:
            stream = client.generate(self.long())
            await anext(stream)
            await self.busy()
            await stream.aclose()
            await self.idle()
            assert (await complete(client, asking())).usage.requests == 1

        self.run(body)

    def test_cancelling_the_caller_frees_the_model(self) -> None:
        async def body(client: ModelClient) -> None:
            begun = asyncio.Event()
            task = asyncio.ensure_future(complete(client, self.long(), lambda _: begun.set()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await self.idle()

        self.run(body)

    def test_cancelling_one_leaves_its_neighbours_alone(self) -> None:
        async def body(client: ModelClient) -> None:
            tasks = [
                asyncio.ensure_future(complete(client, asking(f"Count from {n}.")))
                for n in range(6)
            ]
            await asyncio.sleep(0)
            tasks[2].cancel()
            await asyncio.wait(tasks)
            assert tasks[2].cancelled()
            others = [task.result() for task in tasks if task is not tasks[2]]
            assert all(answer.usage.completion_tokens for answer in others)

        self.run(body)

    def test_many_requests_at_once_all_get_their_answer(self) -> None:
        async def body(client: ModelClient) -> None:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(events_of(client, asking(f"Count from {n}.")))
                    for n in range(16)
                ]
            for task in tasks:
                *deltas, last = task.result()
                assert isinstance(last, Completion)
                assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == last.text

        self.run(body)

    def test_a_closed_client_says_so(self) -> None:
        async def body(client: ModelClient) -> None:
            await complete(client, asking())
            await client.aclose()
            await client.aclose()
            with pytest.raises(ModelUnavailable, match="closed"):
                await complete(client, asking())

        self.run(body)

    def test_closing_the_client_ends_what_is_running(self) -> None:
        async def body(client: ModelClient) -> None:
            begun = asyncio.Event()
            task = asyncio.ensure_future(complete(client, self.long(), lambda _: begun.set()))
            await begun.wait()
            await client.aclose()
            async with asyncio.timeout(120):
                with pytest.raises(WeftError):
                    await task

        self.run(body)

    def test_an_answer_out_of_time_is_a_timeout_and_frees_the_model(self) -> None:
        async def body(client: ModelClient) -> None:
            sampling = Sampling(max_tokens=200, temperature=0)
            with pytest.raises(ModelTimeout):
                await complete(client, asking(sampling=sampling, timeout_s=1e-4))
            await self.idle()
            assert (await complete(client, asking(timeout_s=600))).usage.requests == 1

        self.run(body)

    @pytest.mark.parametrize("timeout_s", [0, -1])
    def test_a_request_without_time_is_not_begun(self, timeout_s: float) -> None:
        async def body(client: ModelClient) -> None:
            with pytest.raises(ModelTimeout):
                await complete(client, asking(timeout_s=timeout_s))
            assert self.running() == 0

        self.run(body)

    def test_an_adapter_nobody_offers_is_a_capability_error(self) -> None:
        async def body(client: ModelClient) -> None:
            with pytest.raises(CapabilityError, match="adapter"):
                await complete(client, asking(adapter="no such adapter"))

        self.run(body)

    def test_an_unknown_decoder_is_a_capability_error(self) -> None:
        async def body(client: ModelClient) -> None:
            with pytest.raises(CapabilityError):
                await complete(client, asking(decode=Lossy("no such decoder")))

        self.run(body)

    def test_a_schema_is_kept(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).structured_output:
                pytest.skip("no structured output")
            sampling = Sampling(max_tokens=200, temperature=0)
            answer = await complete(client, asking(schema=SCHEMA, sampling=sampling))
            jsonschema.validate(json.loads(answer.text), SCHEMA)

        self.run(body)

    def test_a_wrong_schema_is_a_request_error(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).structured_output:
                pytest.skip("no structured output")
            with pytest.raises(ModelRequestError, match="schema"):
                await complete(client, asking(schema={"type": "no such type"}))

        self.run(body)

    def test_a_grammar_is_kept_where_promised_and_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            request = asking(grammar=GRAMMAR, sampling=Sampling(max_tokens=40, temperature=0))
            if (await client.capabilities()).grammar:
                answer = await complete(client, request)
                assert re.fullmatch("(red|green)( and (red|green)){1,2}", answer.text)
                assert answer.finish_reason == "stop"
            else:
                with pytest.raises(CapabilityError, match="grammar"):
                    await complete(client, request)

        self.run(body)

    def test_a_wrong_grammar_is_a_request_error(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).grammar:
                pytest.skip("no grammars")
            with pytest.raises(ModelRequestError, match=r"(?i)grammar"):
                await complete(client, asking(grammar="start: nobody"))

        self.run(body)

    def test_an_unfinished_answer_goes_on_where_promised_and_is_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            begun = (Message("user", "Name some colours."), Message("assistant", "Red, green"))
            request = ModelRequest(begun, sampling=Sampling(max_tokens=LIMIT, temperature=0))
            if (await client.capabilities()).continuation:
                *events, answer = await events_of(client, request)
                assert isinstance(answer, Completion)
                texts = [event.text for event in events if isinstance(event, TextDelta)]
                assert "".join(texts) == answer.text
                assert answer.usage.completion_tokens > 0
                assert not answer.text.startswith("Red, green")
                closed = ModelRequest(
                    (*begun, Message("user", "Go on.")), sampling=request.sampling
                )
                longer = await complete(client, closed)
                assert longer.usage.prompt_tokens > answer.usage.prompt_tokens
            else:
                with pytest.raises(CapabilityError, match=r"go on|going on"):
                    await complete(client, request)

        self.run(body)

    def test_token_ids_are_given_where_promised(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).token_ids:
                pytest.skip("no token ids")
            answer = await complete(client, asking())
            assert 0 < len(answer.token_ids) <= answer.usage.completion_tokens

        self.run(body)

    def test_logprobs_are_given_where_promised_and_asked_for(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).logprobs:
                pytest.skip("no logprobs")
            answer = await complete(client, asking(logprobs=True))
            assert 0 < len(answer.logprobs) <= answer.usage.completion_tokens
            assert all(value <= 0 for value in answer.logprobs)

        self.run(body)

    def test_the_largest_logprobs_are_given_where_promised_and_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            most = (await client.capabilities()).top_logprobs
            with pytest.raises(CapabilityError, match="logprobs"):
                await complete(client, asking(top_logprobs=most + 1))
            for count in {1, min(3, most), most} - {0} if most else ():
                *events, answer = await events_of(client, asking(top_logprobs=count))
                assert isinstance(answer, Completion)
                deltas = [event for event in events if isinstance(event, TextDelta)]
                assert sum((d.top_logprobs for d in deltas), ()) == answer.top_logprobs
                assert len(answer.top_logprobs) == len(answer.logprobs) > 0
                for largest, drawn in zip(answer.top_logprobs, answer.logprobs, strict=True):
                    assert len(largest) == count
                    assert list(largest) == sorted(largest, reverse=True)
                    # Greedy: what was drawn is the largest.
                    assert largest[0] == pytest.approx(drawn)

        self.run(body)

    def test_a_stop_token_ends_the_answer_where_promised_and_is_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            able = await client.capabilities()
            if not able.stop_token_ids:
                sampling = Sampling(max_tokens=LIMIT, stop_token_ids=(7,))
                with pytest.raises(CapabilityError, match="token"):
                    await complete(client, asking(sampling=sampling))
                return
            if not able.token_ids:
                pytest.skip("no token ids to stop at")
            whole = await complete(client, asking())
            stop = whole.token_ids[2]
            place = whole.token_ids.index(stop)
            sampling = Sampling(max_tokens=LIMIT, temperature=0, stop_token_ids=(stop,))
            *events, cut = await events_of(client, asking(sampling=sampling))
            assert isinstance(cut, Completion)
            assert (cut.finish_reason, cut.stop) == ("stop", stop)
            assert cut.token_ids == whole.token_ids[: place + 1]
            texts = [event.text for event in events if isinstance(event, TextDelta)]
            assert "".join(texts) == cut.text
            assert whole.text.startswith(cut.text)
            assert len(cut.text) < len(whole.text)
            assert whole.stop is None

        self.run(body)

    def test_a_stop_text_is_named_where_it_ended_the_answer(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).stop_token_ids:
                pytest.skip("what stops at no tokens may not tell either")
            whole = await complete(client, asking())
            stop = whole.text[1:3]
            sampling = Sampling(max_tokens=LIMIT, temperature=0, stop=("never met", stop))
            cut = await complete(client, asking(sampling=sampling))
            assert (cut.finish_reason, cut.stop) == ("stop", stop)
            assert cut.text == whole.text[: whole.text.index(stop)]
            assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]

        self.run(body)

    def test_a_placed_prompt_is_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            able = await client.capabilities()
            request = ModelRequest(
                prompt_token_ids=(5, 6, 7),
                sampling=Sampling(max_tokens=LIMIT, temperature=0),
                placement=(Placed(2, 0), Placed(1, 0)),
            )
            if able.placement:
                assert (await complete(client, request)).usage.prompt_tokens == 3
            else:
                with pytest.raises(CapabilityError):
                    await complete(client, request)

        self.run(body)

    def test_a_group_of_workers_is_never_ignored(self) -> None:
        async def body(client: ModelClient) -> None:
            layouts = (await client.capabilities()).layouts
            for layout in set(get_args(AttentionLayout)) - set(layouts):
                attention = ConcurrentAttention("alone", 1, 0, layout)
                with pytest.raises(CapabilityError):
                    await complete(client, asking(attention=attention))

        self.run(body)

    def test_prompt_token_ids_are_taken_where_promised(self) -> None:
        async def body(client: ModelClient) -> None:
            if not (await client.capabilities()).prompt_token_ids:
                pytest.skip("no prompt token ids")
            request = ModelRequest(
                prompt_token_ids=(5, 6, 7), sampling=Sampling(max_tokens=LIMIT, temperature=0)
            )
            answer = await complete(client, request)
            assert answer.usage.prompt_tokens == 3
            assert answer.usage.completion_tokens > 0

        self.run(body)


BABBLE = Reply("red green blue " * 200, per_token_s=0.001)
TOOL = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})


class ScriptedModelConformance(ModelClientConformance):
    """The suite for a model whose words the test decides."""

    def playing(self, script: Callable[[bool], Reply]) -> AbstractAsyncContextManager[ModelClient]:
        """A client of a model that answers by `script`, called with whether a schema is asked."""
        raise NotImplementedError

    def serving(self) -> AbstractAsyncContextManager[ModelClient]:
        return self.playing(lambda schema: Reply('{"answer": 4}') if schema else BABBLE)

    def ask(self, reply: Reply, request: ModelRequest | None = None) -> list[ModelEvent]:
        async def main() -> list[ModelEvent]:
            async with self.playing(lambda _: reply) as client:
                return await events_of(client, request or asking(sampling=Sampling()))

        return asyncio.run(main())

    def test_the_words_arrive_as_they_are(self) -> None:
        text = 'Ünï cödé — 漢字 🎉 "quoted" \\ back\nnew line\ttab'
        *_, last = self.ask(Reply(text))
        assert isinstance(last, Completion)
        assert last.text == text
        assert last.finish_reason == "stop"

    def test_an_empty_answer_is_an_answer(self) -> None:
        *_, last = self.ask(Reply(""))
        assert isinstance(last, Completion)
        assert (last.text, last.finish_reason) == ("", "stop")

    def test_a_cut_answer_says_so(self) -> None:
        request = asking(sampling=Sampling(max_tokens=2))
        *_, last = self.ask(Reply("one two three"), request)
        assert isinstance(last, Completion)
        assert (last.text, last.finish_reason) == ("one two", "length")
        assert last.usage.completion_tokens == 2

    def test_tool_calls_arrive_whole(self) -> None:
        calls = (ToolCall("id-1", "add", '{"a": 1}'), ToolCall("id-2", "add", '{"a": 2}'))
        *deltas, last = self.ask(Reply("Well.", tool_calls=calls), asking(tools=(TOOL,)))
        assert isinstance(last, Completion)
        assert last.tool_calls == calls
        assert last.finish_reason == "tool_calls"
        assert last.text == "Well."
        pieces = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
        for index, call in enumerate(calls):
            mine = [piece for piece in pieces if piece.index == index]
            assert (mine[0].id, mine[0].name) == (call.id, call.name)
            assert "".join(piece.arguments for piece in mine) == call.arguments

    def test_reasoning_is_kept_apart_from_the_answer(self) -> None:
        *deltas, last = self.ask(Reply("It is four.", reasoning="Two and two make"))
        assert isinstance(last, Completion)
        assert (last.reasoning, last.text) == ("Two and two make", "It is four.")
        thoughts = [delta.text for delta in deltas if isinstance(delta, ReasoningDelta)]
        words = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
        assert ("".join(thoughts), "".join(words)) == (last.reasoning, last.text)
        assert last.usage.completion_tokens == 7

    def test_an_answer_that_goes_on_too_long_is_cut_by_its_time(self) -> None:
        seen: list[Delta] = []

        async def main() -> None:
            reply = Reply("one two three " * 500, per_token_s=0.1)
            async with self.playing(lambda _: reply) as client:
                request = asking(sampling=Sampling(), timeout_s=20.0)
                with pytest.raises(ModelTimeout):
                    await complete(client, request, hear)
                await self.idle()

        def hear(delta: Delta) -> None:
            if not seen:
                manual_clock.pass_time(20)
            seen.append(delta)

        manual_clock.run(main())
        assert seen

    def test_a_stream_that_breaks_off_is_retryable(self) -> None:
        seen: list[Delta] = []

        async def main() -> None:
            reply = Reply("one two three", break_after_tokens=2)
            async with self.playing(lambda _: reply) as client:
                await complete(client, asking(sampling=Sampling()), seen.append)

        with pytest.raises(ModelUnavailable) as raised:
            asyncio.run(main())
        assert raised.value.retryable
        assert "".join(delta.text for delta in seen if isinstance(delta, TextDelta)) == "one two"

    def test_an_overloaded_model_says_when_to_come_back(self) -> None:
        with pytest.raises(ModelOverloaded) as raised:
            self.ask(Reply(error=ModelOverloaded("busy", retry_after_s=2.5)))
        assert raised.value.retry_after_s == 2.5
        assert raised.value.retryable

    def test_a_refused_request_is_not_retryable(self) -> None:
        with pytest.raises(ModelRequestError, match="too long") as raised:
            self.ask(Reply(error=ModelRequestError("too long")))
        assert not raised.value.retryable

    def test_usage_counts_both_sides(self) -> None:
        *_, last = self.ask(Reply("one two three"))
        assert isinstance(last, Completion)
        assert last.usage.completion_tokens == 3
        assert last.usage == Usage(
            last.usage.prompt_tokens, 3, requests=1, forwards=last.usage.forwards
        )


class CheckedModelConformance(ScriptedModelConformance):
    """For clients that check a model's output against the schema, rather than constrain it."""

    @pytest.mark.parametrize(
        "text", ["", "no", '{"answer": 4', '{"answer": 44}', "[]", '{"answer": NaN}', "[" * 5000]
    )
    def test_an_output_that_does_not_fit_is_retryable(self, text: str) -> None:
        with pytest.raises(ModelOutputError) as raised:
            self.ask(Reply(text), asking(schema=SCHEMA, sampling=Sampling()))
        assert raised.value.retryable
