"""Every strategy, over eight families' chat templates, with models that think in every wrong way.

It ends with an answer or with an error that says why there is none; never with an empty success,
nor with a thought for an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import weft
from tests.chat_templates import FAMILIES, Family
from tests.reasoning.strategy_cases import NEED_TOKEN_IDS, occasion
from weft.core.generated_text import (
    THOUGHTS,
    is_blank,
    open_thought,
    opening_of_thought,
    without_thought,
)
from weft.core.ports import Capabilities, ModelEvent, ModelRequest
from weft.core.values import Message
from weft.errors import ReasoningError
from weft.reasoning.strategies import STRATEGIES
from weft.serving.local.tokenizer import LocalTokenizer
from weft.serving.text import FormatName, Splitter, separated
from weft.testing import FakeModel, Reply, TokenModel, TokenReply

BUDGET = 600
OPTIONS: dict[str, Any] = {"width": 2, "rounds": 2, "max_tokens": 80, "budget": BUDGET}
LONG = 150
"""Words of a thought that is longer than anything may be."""
BEHAVIOURS = (
    *("thinks too long", "never closes", "prompt opens", "fences", "calls tools"),
    *("stops in its thought", "says nothing"),
)
HAS_AN_ANSWER = ("prompt opens", "fences")
CALLS: Mapping[FormatName, str] = {
    "hermes": '<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call>',
    "json": '{"name": "search", "parameters": {}}',
    "mistral": "[TOOL_CALLS]search[ARGS]{}",
}
HM = "hm "


@cache
def tokenizer(name: str) -> LocalTokenizer:
    with TemporaryDirectory() as folder:
        return LocalTokenizer.read(FAMILIES[name].write(Path(folder) / name))


def tags(family: Family) -> tuple[str, str]:
    """What begins a thought of the family and what ends it. Without a form: plain text."""
    if family.style == "harmony":  # the fake model's own end is also written <|end|>
        begin, end = THOUGHTS[2]
        return begin, end.removeprefix("<|end|>")
    return THOUGHTS[1] if family.style == "mistral" else THOUGHTS[0]


def said(family: Family, behaviour: str, strategy: str, before: str) -> TokenReply:
    """What the model says behind `before`, the beginning of its answer."""
    begin, end = tags(family)
    thinking, over = bool(open_thought(before)), any(close in before for _, close in THOUGHTS)
    begin = "" if thinking else begin
    answer = occasion(strategy).says
    if behaviour == "fences":
        answer = f"```\n{answer}\n```"
    if behaviour == "calls tools":
        answer = CALLS[family.tool_format]
    if family.style == "granite":
        answer = f"<response>{answer}</response>"
    if behaviour == "says nothing":
        return TokenReply("")
    if behaviour == "never closes":
        return TokenReply(begin + HM, endless=True)
    if behaviour == "stops in its thought":
        return TokenReply("" if over else begin + HM)
    thought = HM * (LONG if behaviour == "thinks too long" else 2)
    return TokenReply(answer if over and not thinking else f"{begin}{thought}{end}{answer}")


class TemplatedModel(TokenModel):
    """A model over token ids with a family's chat template; its prompts are remembered."""

    def __init__(self, family: Family, behaviour: str, strategy: str) -> None:
        special = tuple(tag for tag in (*family.special, *family.tags) if tag != "<|end|>")
        super().__init__(self._said, tags=special, shows_tags=True, model=family.name)
        self._family, self._behaviour, self._strategy = family, behaviour, strategy
        self._chats: list[tuple[int, ...]] = []

    async def capabilities(self) -> Capabilities:
        layouts = ("contiguous", "interleaved", "combined")
        return replace(await super().capabilities(), layouts=layouts)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        local = tokenizer(self._family.name)
        text = local.decode(
            local.encode_chat(
                messages, ModelRequest(messages).continues, template=chat_template_kwargs
            )
        )
        if self._behaviour == "prompt opens" and not opening_of_thought(text):
            text += f"{tags(self._family)[0]}\n"
        self._chats.append(self.read(text))
        return self._chats[-1]

    def _said(self, prompt: tuple[int, ...], request: ModelRequest) -> TokenReply:
        begun = [chat for chat in self._chats if prompt[: len(chat)] == chat]
        chat = max(begun, key=len, default=())
        before = opening_of_thought(self.spell(chat)) + self.spell(prompt[len(chat) :])
        return said(self._family, self._behaviour, self._strategy, before)


class SeparatedModel(FakeModel):
    """A chat model in whose text the client finds the thought, in the family's form."""

    def __init__(self, family: Family, behaviour: str, strategy: str) -> None:
        super().__init__(self._said, model=family.name)
        self._family, self._behaviour, self._strategy = family, behaviour, strategy

    def _said(self, request: ModelRequest) -> Reply:
        opened = self._family.style == "think-open"
        before = tags(self._family)[0] if opened else ""
        reply = said(self._family, self._behaviour, self._strategy, before)
        text = str(reply.tokens)
        return Reply(text * LONG * 2 if reply.endless else text)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        events = super().generate(request)
        style = self._family.style
        async for event in separated(events, Splitter(style)) if style else events:
            yield event


def outcome(strategy: str, model: TemplatedModel | SeparatedModel) -> weft.Thought | None:
    """The thought; None where there is none, for a reason."""
    asked = occasion(strategy)
    options = weft.ThinkOptions(**OPTIONS, settings=asked.settings)
    try:
        return weft.think_sync(
            asked.question,
            strategy=strategy,
            model=model,
            documents=asked.documents,
            options=options,
        )
    except ReasoningError:
        return None
    finally:
        assert model.running == 0


def check(family: Family, behaviour: str, strategy: str, kind: str) -> None:
    make = TemplatedModel if kind == "tokens" else SeparatedModel
    thought = outcome(strategy, make(family, behaviour, strategy))
    if thought is None:
        assert behaviour not in HAS_AN_ANSWER or strategy not in ("direct", "sample", "a2r")
        return
    answer = thought.answer
    assert not is_blank(answer)
    assert not is_blank(without_thought(answer)), "a thought is no answer"
    assert not any(mark in answer for pair in THOUGHTS for mark in pair)
    assert thought.counts.total_tokens <= BUDGET
    if behaviour in ("says nothing", "stops in its thought"):
        assert thought.cut or thought.lost, "there never was an answer"
    if behaviour in ("thinks too long", *HAS_AN_ANSWER) and not thought.cut:
        assert HM.strip() not in answer.split()


SAME_FORM = {"smollm3": "qwen3", "gemma3": "llama3"}
"""Families whose thoughts a chat client reads in the same way."""


@pytest.mark.parametrize(
    ("strategy", "kind", "family"),
    [
        (name, kind, family)
        for name in STRATEGIES
        for kind in ("tokens", "chat")
        for family in FAMILIES
        if kind == "tokens" or (name not in NEED_TOKEN_IDS and family not in SAME_FORM)
    ],
    ids=str,
)
def test_an_answer_or_a_typed_error(strategy: str, kind: str, family: str) -> None:
    for behaviour in BEHAVIOURS:
        try:
            check(FAMILIES[family], behaviour, strategy, kind)
        except AssertionError as error:
            raise AssertionError(f"a model that {behaviour}: {error}") from error
