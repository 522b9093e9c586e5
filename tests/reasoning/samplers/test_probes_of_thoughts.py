"""Parallel-Probe with models that think: a probe ends the thought before it asks for the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import weft
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.testing import TokenModel, TokenReply

FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
FORMS = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", FINAL),
]


class Thinker(TokenModel):
    """A model that thinks for long; `opens`: its chat template writes the opening tag."""

    def __init__(self, begin: str, end: str, *, opens: bool) -> None:
        super().__init__(self._said, tags=(begin, end))
        self._begin, self._end, self._opens = begin, end, opens

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        prompt = await super().encode_chat(messages, chat_template_kwargs=chat_template_kwargs)
        return prompt + (self.read(f"{self._begin}\n") if self._opens else ())

    def _said(self, prompt: Sequence[int], _: ModelRequest) -> TokenReply:
        if self.spell(prompt).endswith("\\boxed{"):
            return TokenReply("42}")
        opening = "" if self._opens else self._begin
        return TokenReply(f"{opening}{'h' * 60}{self._end}The answer is 42.")


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize(("begin", "end"), FORMS)
def test_a_probe_closes_an_open_thought(begin: str, end: str, opens: bool) -> None:
    model = Thinker(begin, end, opens=opens)
    settings = {"sampler": "probe", "every": 10, "warmup": 0, "stable": 2}
    thought = weft.think_sync(
        "What is 6 * 7?",
        model=model,
        options=weft.ThinkOptions(width=2, max_tokens=200, settings=settings),
    )
    assert "42" in thought.answer
    asked = [model.spell(request.prompt_token_ids) for request in model.requests]
    probes = [text for text in asked if text.endswith("The final answer is \\boxed{")]
    assert probes
    for text in probes:
        assert text.count(end) == 1
        assert text.index(begin) < text.index(end)
    (token,) = model.read(end)
    for request in model.requests:
        if model.spell(request.prompt_token_ids) in probes:
            assert token in request.prompt_token_ids  # the special token, not its letters
