"""The bound on a thought: switched off, ended by force, or long enough; by token ids."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ModelRequestError
from weft.core.ports import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    Sampling,
    TextDelta,
    complete,
)
from weft.core.values import Completion, Message
from weft.serving.thinking import think_within
from weft.testing import TokenModel

OPEN, CLOSE = "<think>", "</think>"
ASKED = (Message("user", "?"),)


class Thinker(TokenModel):
    """Writes `thought` and then `answer`, from wherever its prompt leaves off.

    `opens`: its template opens the thought. `tags`: its tags are single tokens, absent from texts.
    """

    def __init__(
        self, thought: str, answer: str, *, opens: bool = False, tags: bool = True
    ) -> None:
        super().__init__(self._said, tags=(OPEN, CLOSE) if tags else ())
        self.thought, self.answer, self.opens = thought, answer, opens

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        prompt = await super().encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
        return prompt + (self.read(f"{OPEN}\n") if self.opens else ())

    async def special_token(self, text: str) -> int | None:
        """Tags of several tokens are known, too: the model thinks."""
        return self.read(text)[0] if text in (OPEN, CLOSE) else await super().special_token(text)

    def _said(self, prompt: Sequence[int], request: ModelRequest) -> str:
        before = self.spell(prompt).rpartition("<|assistant|>")[2]
        if request.schema is not None or CLOSE in before:
            return self.answer
        rest = f"{self.thought}{CLOSE}{self.answer}"
        return rest if OPEN in before else f"{OPEN}{rest}"

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        inner = super().generate
        answer = inner(request)
        if request.sampling.thinking_tokens is not None:
            answer = think_within(request, inner, self, model=self.model)
        async with aclosing(answer) as stream:
            async for event in stream:
                yield event


def ask(model: TokenModel, thinking: int, most: int | None = None, **rest: object) -> Completion:
    sampling = Sampling(max_tokens=most, thinking_tokens=thinking, seed=3)
    request = replace(ModelRequest(ASKED, sampling=sampling), **rest)  # type: ignore[arg-type]
    events: list[ModelEvent] = []

    async def main() -> Completion:
        async with aclosing(model.generate(request)) as stream:
            async for event in stream:
                events.append(event)
        last = events[-1]
        assert isinstance(last, Completion)
        return last

    completion = asyncio.run(main())
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert (text, thought) == (completion.text, completion.reasoning)
    assert sum(isinstance(event, Prefilled) for event in events) == 1
    assert sum(isinstance(event, Completion) for event in events) == 1
    return completion


TEXT = st.text("abcdefg ", min_size=1, max_size=40).map(lambda text: f"x{text.strip()}y")


@given(
    thought=st.text("abc", max_size=40),
    answer=TEXT,
    thinking=st.integers(0, 60),
    most=st.integers(2, 60),
    opens=st.booleans(),
)
def test_the_thought_is_bounded_and_the_answer_is_whole(
    thought: str, answer: str, thinking: int, most: int, opens: bool
) -> None:
    """The oracle: the first tokens of the thought, then the first tokens of the answer."""
    model = Thinker(thought, answer, opens=opens)
    completion = ask(model, thinking, most)
    fits = len(thought) + 1 + (not opens) <= thinking
    expected = thought if fits else thought[: max(0, thinking - (not opens))]
    assert completion.reasoning == expected
    lost = 1 if not opens and not thinking else 0  # the tag was read before it was known
    assert completion.text == answer[: most - lost]
    assert completion.finish_reason == ("length" if most - lost <= len(answer) else "stop")
    assert model.generated <= thinking + most
    assert completion.usage.completion_tokens <= thinking + most
    assert completion.usage.reasoning_tokens <= thinking + lost
    assert len(model.requests) == (1 if fits or (opens and not thinking) else 2)
    context = model.spell((*asyncio.run(model.encode_chat(ASKED)), *completion.token_ids))
    assert context.rpartition(CLOSE)[2].strip().removesuffix("<|end|>") == completion.text


@given(thought=st.text("abc", max_size=40), answer=TEXT, thinking=st.integers(20, 90))
def test_tags_of_several_tokens(thought: str, answer: str, thinking: int) -> None:
    model = Thinker(thought, answer, tags=False)
    completion = ask(model, thinking, 60)
    assert completion.text == answer
    if len(OPEN + thought + CLOSE) <= thinking:
        assert completion.reasoning == thought
    assert model.generated <= thinking + 60 + len(CLOSE)


def test_no_thought_at_all_is_one_request_where_the_template_opens_it() -> None:
    model = Thinker("long", "yes", opens=True)
    completion = ask(model, 0, 10)
    assert (completion.text, completion.reasoning.strip()) == ("yes", "")
    assert completion.usage.reasoning_tokens == 0
    assert len(model.requests) == 1
    assert model.spell(model.requests[0].prompt_token_ids).endswith(f"{OPEN}\n\n{CLOSE}\n\n")


def test_a_schema_holds_for_the_answer_and_not_for_the_thought() -> None:
    model = Thinker("hmm", '{"n": 1}', opens=True)
    schema = {"type": "object"}
    completion = ask(model, 20, 40, schema=schema)
    assert (completion.text, completion.reasoning) == ('{"n": 1}', "hmm")
    assert [request.schema for request in model.requests] == [None, schema]
    closed = Thinker("hmm", '{"n": 1}')
    assert ask(closed, 20, 40, schema=schema).text == '{"n": 1}'
    assert [request.schema for request in closed.requests] == [schema]


@pytest.mark.parametrize("end", ["stop text", "own end"])
def test_an_answer_that_ends_within_its_thought_is_asked_for(end: str) -> None:
    class Short(Thinker):
        def _said(self, prompt: Sequence[int], request: ModelRequest) -> str:
            before = self.spell(prompt).rpartition("<|assistant|>")[2]
            return self.answer if CLOSE in before else f"{OPEN}so. STOP"

    model = Short("", "yes")
    sampling = Sampling(
        max_tokens=9, thinking_tokens=50, stop=("STOP",) if end == "stop text" else ()
    )
    completion = ask(model, 0, sampling=sampling)
    assert completion.text == "yes"
    prompt = model.spell(model.requests[1].prompt_token_ids)
    assert prompt.endswith(f"\n{CLOSE}\n\n")
    assert "<|end|>" not in prompt.rpartition("<|assistant|>")[2]


def test_a_model_without_tags_answers_as_it_is() -> None:
    model = TokenModel(lambda *_: "plain", tags=())

    async def main() -> str:
        request = ModelRequest(ASKED, sampling=Sampling(max_tokens=9, thinking_tokens=5))
        answer = think_within(request, model.generate, model, model="m")
        return "".join([e.text async for e in answer if isinstance(e, TextDelta)])

    assert asyncio.run(main()) == "plain"
    assert model.requests[0].sampling == Sampling(max_tokens=9)
    assert model.requests[0].messages == ASKED


def test_the_thought_of_mistral_is_bounded() -> None:
    tags = ("[THINK]", "[/THINK]")

    def said(prompt: Sequence[int], _: ModelRequest) -> str:
        begun = tags[1] in model.spell(prompt).rpartition("<|assistant|>")[2]
        return "Yes." if begun else f"{tags[0]}{'h' * 40}{tags[1]}Yes."

    model = TokenModel(said, tags=tags)

    async def main() -> Completion:
        request = ModelRequest(ASKED, sampling=Sampling(max_tokens=9, thinking_tokens=5))
        return await complete(_Bounded(model), request)

    answer = asyncio.run(main())
    assert (answer.text, answer.reasoning) == ("Yes.", "hhhh")
    assert answer.usage.reasoning_tokens == 5


class _Bounded:
    """A token model whose thoughts are bounded."""

    def __init__(self, model: TokenModel) -> None:
        self._own = model
        self.model = model.model

    async def capabilities(self) -> Capabilities:
        return await self._own.capabilities()

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        answer = think_within(request, self._own.generate, self._own, model=self.model)
        async with aclosing(answer) as stream:
            async for event in stream:
                yield event

    async def aclose(self) -> None:
        await self._own.aclose()


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ModelRequestError, match="thinking_tokens cannot be -1"):
        ask(Thinker("a", "b"), -1)


def test_closing_the_stream_closes_the_models() -> None:
    model = Thinker("a" * 50, "b")

    async def main() -> None:
        sampling = Sampling(max_tokens=9, thinking_tokens=50)
        async with aclosing(model.generate(ModelRequest(ASKED, sampling=sampling))) as stream:
            async for _ in stream:
                break
        assert (model.running, model.cancelled) == (0, 1)
        await complete(model, ModelRequest(ASKED, sampling=replace(sampling, thinking_tokens=3)))
        assert (model.running, model.cancelled) == (0, 2)

    asyncio.run(main())
