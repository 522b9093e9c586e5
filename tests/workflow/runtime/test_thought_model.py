"""A strategy over a model as a model: what streams, what it costs, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.workflow import thread_strategy
from weft.core.errors import (
    BuildError,
    CapabilityError,
    InputError,
    ModelTimeout,
    ModelUnavailable,
    WeftError,
)
from weft.core.ports import ModelEvent, ModelRequest, ReasoningDelta, Sampling, TextDelta, complete
from weft.core.values import Completion, Message, ToolSpec
from weft.reasoning.options import ThinkOptions
from weft.testing import FakeClock, FakeModel, Reply
from weft.workflow.runtime.models.think import ThoughtModel, question_of


@pytest.fixture(autouse=True)
def _chorus() -> Iterator[None]:
    with thread_strategy.registered():
        yield


def user(text: str = "why?", **fields: Any) -> ModelRequest:
    return ModelRequest((Message("user", text),), **fields)


def thinking(*replies: Reply | str, width: int = 2) -> tuple[ThoughtModel, FakeModel]:
    base = FakeModel(replies)
    return ThoughtModel(base, "chorus", ThinkOptions(width=width), name="careful"), base


async def events(model: ThoughtModel, request: ModelRequest) -> list[ModelEvent]:
    async with aclosing(model.generate(request)) as stream:
        return [event async for event in stream]


def test_threads_come_as_reasoning_and_then_the_answer() -> None:
    model, _ = thinking("a b", "c d", "a b", width=3)
    *deltas, last = FakeClock().run(events(model, user()))
    assert isinstance(last, Completion)
    reasoning = [delta.text for delta in deltas if isinstance(delta, ReasoningDelta)]
    assert len(reasoning) == 3
    assert "voices/voice0" in reasoning[0]
    assert "".join(reasoning) == last.reasoning
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == [last.text]
    assert (last.text, last.model) == ("a b", "careful")
    assert last.usage.requests == 3
    assert last.usage.completion_tokens == 6


@pytest.mark.parametrize("strategy", ["direct", "skeleton"])
def test_an_answer_that_one_call_writes_is_streamed(strategy: str) -> None:
    base = FakeModel([Reply("one two three", per_token_s=1.0)])
    model = ThoughtModel(base, strategy)
    question = "What is 3 + 4 * 2?"  # no question for points, by its form
    clock, came = FakeClock(), list[tuple[float, str]]()

    async def main() -> Completion:
        async with aclosing(model.generate(user(question))) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    came.append((clock.now(), event.text))
                elif isinstance(event, Completion):
                    return event
        raise AssertionError

    last = clock.run(main())
    assert "".join(text for _, text in came) == last.text == "one two three"
    assert [at_s for at_s, _ in came] == [0.0, 1.0, 2.0]
    assert last.reasoning == ""
    held = FakeClock().run(events(model, user(question, extra={"stream": False})))
    assert sum(isinstance(event, TextDelta) for event in held) == 1


def test_the_request_says_how_it_is_sampled_and_how_much_it_may_cost() -> None:
    model, base = thinking("a")
    sampling = Sampling(max_tokens=1500, temperature=0.1, top_p=0.5, seed=9)
    FakeClock().run(complete(model, user(sampling=sampling)))
    first, second = (request.sampling for request in base.requests)
    assert (first.temperature, first.top_p) == (0.1, 0.5)
    assert (first.max_tokens or 0) + (second.max_tokens or 0) <= 1500
    other, again = thinking("a")
    FakeClock().run(complete(other, user(sampling=sampling)))
    assert [request.sampling for request in again.requests] == [first, second]


def test_a_schema_reaches_the_model() -> None:
    model, base = thinking("1")
    FakeClock().run(complete(model, user(schema={"type": "integer"})))
    assert base.requests[0].schema == {"type": "integer"}


def test_a_conversation_is_one_question() -> None:
    said = (
        Message("system", "Be kind."),
        Message("user", "Who?"),
        Message("assistant", "Me."),
        Message("system", "And brief."),
        Message("user", "Why?"),
    )
    question = question_of(ModelRequest(said))
    assert question.system == "Be kind.\n\nAnd brief."
    assert question.text.index("user: Who?") < question.text.index("assistant: Me.")
    assert question.text.endswith("Why?")
    assert question_of(user("Why?")).text == "Why?"


@pytest.mark.parametrize(
    "messages", [(Message("system", "x"),), (Message("user", " "),), (Message("tool", "x"),)]
)
def test_somebody_has_to_ask(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InputError):
        question_of(ModelRequest(messages))


_TOOL = ToolSpec("t", "", {"type": "object"})


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": (_TOOL,)},
        {"grammar": "start: /a/"},
        {"logprobs": True},
        {"top_logprobs": 2},
        {"adapter": "a"},
        {"sampling": Sampling(stop=("x",))},
        {"sampling": Sampling(top_k=3)},
        {"sampling": Sampling(min_p=0.1)},
    ],
)
def test_what_it_cannot_do_is_refused(fields: dict[str, Any]) -> None:
    model, base = thinking("a")
    with pytest.raises(CapabilityError, match="careful thinks: no"):
        FakeClock().run(events(model, user(**fields)))
    ids = replace(user(), messages=(), prompt_token_ids=(1,))
    with pytest.raises(CapabilityError):
        FakeClock().run(events(model, ids))
    assert not base.requests


def test_closing_the_stream_ends_every_thread() -> None:
    model, base = thinking(Reply("a b c", per_token_s=1.0), width=4)

    async def main() -> None:
        task = asyncio.create_task(events(model, user()))
        await asyncio.sleep(0.5)
        assert base.running == 4
        task.cancel()
        await asyncio.wait((task,))
        assert base.running == 0

    FakeClock().run(main())
    assert base.cancelled == 4


def test_closing_the_model_ends_every_call_and_there_are_no_more() -> None:
    model, base = thinking(Reply("a b c", per_token_s=1.0), width=2)

    async def main() -> None:
        task = asyncio.create_task(events(model, user()))
        await asyncio.sleep(0.5)
        await model.aclose()
        with pytest.raises(ModelUnavailable, match="careful is closed"):
            await task
        assert base.running == 0
        with pytest.raises(ModelUnavailable, match="careful is closed"):
            await complete(model, user())

    FakeClock().run(main())


def test_an_answer_that_takes_too_long_is_a_timeout() -> None:
    model, base = thinking(Reply("a b c", per_token_s=1.0))
    with pytest.raises(ModelTimeout):
        FakeClock().run(complete(model, user(timeout_s=1.5)))
    assert base.running == 0


def test_no_answer_says_why() -> None:
    model, _ = thinking(Reply("x", error=ModelUnavailable("gone")))
    with pytest.raises(WeftError, match="nobody said anything"):
        FakeClock().run(complete(model, user()))


def test_a_strategy_that_is_not_there_is_found_when_the_model_is_made() -> None:
    with pytest.raises(BuildError, match="there is no strategy 'choir'"):
        ThoughtModel(FakeModel(["x"]), "choir")
    with pytest.raises(BuildError, match="has no setting 'mod'"):
        ThoughtModel(FakeModel(["x"]), "chorus", ThinkOptions(settings={"mod": 1}))
