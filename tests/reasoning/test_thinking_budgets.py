"""Every strategy with models that think: too long, without end, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from tests.profile import examples
from tests.reasoning.strategy_cases import NEED_TOKEN_IDS, cases, occasion
from weft.core.ports import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Message
from weft.errors import BuildError, NodeFailed, ReasoningError
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES
from weft.serving.thinking import think_within
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

OPEN, CLOSE = "<think>", "</think>"
BUDGET = 9_000


class Thinker(TokenModel):
    """A model over token ids that thinks for `thought` tokens before whatever it says.

    `bounded`: it honours `thinking_tokens`, by the mechanism of the real clients.
    """

    def __init__(self, says: str, thought: int, *, opens: bool, bounded: bool) -> None:
        super().__init__(self._said, tags=(OPEN, CLOSE))
        self._says, self._thought, self._opens, self._bounded = says, thought, opens, bounded

    async def capabilities(self) -> Capabilities:
        return replace(await super().capabilities(), thinking=self._bounded)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        prompt = await super().encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
        return prompt + (self.read(f"{OPEN}\n") if self._opens else ())

    def _said(self, prompt: Sequence[int], request: ModelRequest) -> TokenReply:
        begun = self.spell(prompt).rpartition("<|assistant|>")[2]
        if request.schema is not None or CLOSE in begun or (begun and OPEN not in begun):
            return TokenReply(self._says)
        opening = "" if OPEN in begun else OPEN
        return TokenReply(f"{opening}{'h' * self._thought}{CLOSE}{self._says}")

    def _text(self, ids: Sequence[int]) -> str:
        return self.spell([each for each in ids if self.spell([each]) != "<|end|>"])

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        inner = super().generate
        answer = inner(request)
        if request.sampling.thinking_tokens is not None:
            answer = think_within(request, inner, self, model=self.model)
        async with aclosing(answer) as stream:
            async for event in stream:
                yield event


def thinker(strategy: str, kind: str, thought: int, *, opens: bool, bounded: bool) -> object:
    says = occasion(strategy).says
    if kind == "tokens":
        return Thinker(says, thought, opens=opens, bounded=bounded)
    words = " ".join(["hm"] * thought)
    able = Capabilities(structured_output=False, thinking=bounded)
    reply = Reply(says, reasoning=words) if bounded else Reply(f"{OPEN}{words}{CLOSE}{says}")
    return FakeModel(lambda _: reply, capabilities=able)


def think(strategy: str, model: object, **options: object) -> weft.Thought:
    asked = occasion(strategy)
    given: dict[str, object] = {"width": 3, "rounds": 2, "max_tokens": 400, "budget": BUDGET}
    return weft.think_sync(
        asked.question,
        strategy=strategy,
        model=model,  # type: ignore[arg-type]
        documents=asked.documents,
        options=ThinkOptions(**{**given, **options}, settings=asked.settings),  # type: ignore[arg-type]
    )


each = pytest.mark.parametrize(("strategy", "kind"), cases(), ids=str)


@each
@examples(6)
@given(
    thought=st.integers(0, 700),
    max_tokens=st.integers(1, 500),
    opens=st.booleans(),
    bounded=st.booleans(),
)
def test_an_answer_or_a_typed_error(
    strategy: str, kind: str, thought: int, max_tokens: int, opens: bool, bounded: bool
) -> None:
    """However long a model thinks: an answer, or an error that says why there is none."""
    model = thinker(strategy, kind, thought, opens=opens, bounded=bounded)
    try:
        result = think(strategy, model, max_tokens=max_tokens)
    except ReasoningError:
        return  # typed, with its reason
    assert result.answer.strip()
    assert OPEN not in result.answer
    counts = result.counts
    assert counts.reasoning_tokens + counts.answer_tokens == counts.total_tokens <= BUDGET
    assert (result.fidelity == "approximate") == bool(result.lost)


@pytest.mark.parametrize("strategy", [name for name, kind in cases() if kind == "chat"])
@examples(6)
@given(thought=st.integers(0, 700), thinking=st.integers(0, 300), opens=st.booleans())
@pytest.mark.parametrize("kind", ["chat", "tokens"])
def test_a_bounded_thought_leaves_room_for_the_answer(
    strategy: str, kind: str, thought: int, thinking: int, opens: bool
) -> None:
    model = thinker(strategy, kind, thought, opens=opens, bounded=True)
    result = think(strategy, model, thinking_tokens=thinking, budget=40_000)
    assert result.answer.strip()
    assert not result.cut
    counts = result.counts
    assert counts.total_tokens <= 40_000
    assert counts.reasoning_tokens <= counts.requests * (thinking + 2)
    if not thinking:
        assert counts.reasoning_tokens <= counts.requests
    elif thought > 1:
        assert counts.reasoning_tokens > 0 or strategy in ("map-reduce", "mirage", "hogwild")


@pytest.mark.parametrize("strategy", ["skeleton", "abstraction", "map-reduce", "mirage"])
def test_steps_do_not_starve(strategy: str) -> None:
    """Their limits of 8 to 512 tokens are for the step alone, whatever a model thinks."""
    bounded = thinker(strategy, "chat", 600, opens=False, bounded=True)
    result = think(strategy, bounded, max_tokens=700)
    assert "cut off" not in result.lost
    asked = bounded.requests  # type: ignore[attr-defined]
    steps = [r.sampling for r in asked if r.sampling.thinking_tokens == 0]
    assert steps


@pytest.mark.parametrize(
    ("strategy", "answers"),
    [
        ("self-refine", 1),
        ("plansearch", 1),
        ("skeleton", 0),
        ("map-reduce", 0),
        ("mirage", 0),
    ],
)
def test_what_is_no_answer_does_not_think(strategy: str, answers: int) -> None:
    """Critiques, observations, plans, tests and grades think no more than a skeleton does."""
    model = thinker(strategy, "chat", 20, opens=False, bounded=True)
    think(strategy, model, budget=40_000)
    asked = model.requests  # type: ignore[attr-defined]
    thinking = [r for r in asked if r.sampling.thinking_tokens is None]
    still = [r for r in asked if r.sampling.thinking_tokens == 0]
    assert len(thinking) + len(still) == len(asked)
    assert still
    for request in thinking:
        text = request.messages[-1].content
        assert not any(word in text for word in ("Criticise", "Verdict", "observations", "tests"))
    assert len(thinking) >= answers


def test_a_model_that_cannot_be_bounded_is_asked_again_with_room_for_its_thought() -> None:
    model = thinker("map-reduce", "chat", 600, opens=False, bounded=False)
    result = think("map-reduce", model, max_tokens=700)
    assert result.answer == occasion("map-reduce").says
    limits = [r.sampling.max_tokens for r in model.requests]  # type: ignore[attr-defined]
    assert 320 in limits
    assert limits[-1] == 512 + 700


def test_what_was_cut_is_lost() -> None:
    model = thinker("map-reduce", "chat", 5_000, opens=False, bounded=False)
    with pytest.raises(ReasoningError, match="spent on thought") as failed:
        think("map-reduce", model)
    assert "thinking_tokens" in (failed.value.hint or "")
    long = FakeModel(lambda request: " ".join(["1. a b c d"] * 200))
    result = think("skeleton", long)
    assert "steps were cut off where their tokens were spent: skeleton" in result.lost
    assert result.fidelity == "approximate"


def test_confidences_of_bounded_thoughts_say_what_they_read() -> None:
    model = thinker("sample", "chat", 9, opens=False, bounded=True)
    model._capabilities = replace(model._capabilities, logprobs=True)  # type: ignore[attr-defined]
    asked = occasion("sample").question
    options = ThinkOptions(
        width=2, thinking_tokens=4, settings={"selector": "confidence", "sampler": "fixed"}
    )
    result = weft.think_sync(asked, strategy="sample", model=model, options=options)  # type: ignore[arg-type]
    assert "thoughts are bounded" in result.lost
    assert result.fidelity == "approximate"


def test_a_model_without_a_bound_is_refused_before_it_is_asked() -> None:
    model = thinker("sample", "chat", 5, opens=False, bounded=False)
    with pytest.raises(ReasoningError, match="is not known to bound its thought"):
        think("sample", model, thinking_tokens=10)
    assert not model.requests  # type: ignore[attr-defined]


@pytest.mark.parametrize("strategy", sorted(NEED_TOKEN_IDS))
def test_protocols_within_the_thought_refuse_a_bound(strategy: str) -> None:
    with pytest.raises(BuildError, match="writes within the thought"):
        think(
            strategy, thinker(strategy, "tokens", 5, opens=False, bounded=True), thinking_tokens=9
        )


def test_a_thought_that_never_ends_is_no_success() -> None:
    endless = FakeModel(lambda _: f"{OPEN}{' hm' * 3_000}")
    for strategy in ("direct", "sample"):
        with pytest.raises(ReasoningError, match="thought") as failed:
            think(strategy, endless)
        assert "max_tokens" in (failed.value.hint or "")
    assert STRATEGIES


def test_as_a_model_it_takes_the_bound_of_a_request() -> None:
    from weft.core.ports import Sampling, complete

    base = FakeModel(lambda _: Reply("The answer is 42.", reasoning="hm " * 50))
    model = weft.ThoughtModel(base, "direct")
    request = ModelRequest((Message("user", "?"),), sampling=Sampling(20, thinking_tokens=7))
    answer = asyncio.run(complete(model, request))
    assert answer.text == "The answer is 42."
    assert answer.usage.reasoning_tokens == 7
    bare = weft.ThoughtModel(FakeModel([""], capabilities=Capabilities()), "direct")
    with pytest.raises(NodeFailed, match=r"CapabilityError: .* bound its thought"):
        asyncio.run(complete(bare, request))


def test_a_round_after_the_thought_is_read_where_the_prompt_opened_it() -> None:
    """What follows the first round is no thought, though the prompt ends with `<think>`."""
    model = thinker("backtrack", "tokens", 5, opens=True, bounded=False)
    settings = {"chains": 1, "stable": 2}
    result = weft.think_sync(
        "What is 6 * 7?",
        strategy="backtrack",
        model=model,  # type: ignore[arg-type]
        options=ThinkOptions(rounds=3, max_tokens=100, settings=settings),
    )
    (chain,) = result.samples
    assert result.counts.requests == 3
    assert "wrote nothing more" not in result.why
    assert chain.text.count("42") >= 3
