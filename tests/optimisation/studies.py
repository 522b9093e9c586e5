"""A workflow and a model for studies: answers are right more often with a better prompt and order.

The model is a function of what it is asked, so that every study of it is repeatable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import weft
from weft.core.ports import ModelRequest
from weft.testing import FakeModel

FLOW = """\
name: judge
inputs: {question: string}
models: {small: {use: openai, model: none, base_url: "http://127.0.0.1:9/v1"}}
nodes:
  facts: {model: small, prompt: "Facts about {{ question }}", retry: 1}
  answer:
    model: small
    prompt: "Answer {{ question }} by {{ facts }}"
    retry: 1
    schema:
      type: object
      properties: {answer: {type: string}, why: {type: string}}
      required: [answer, why]
outputs: {answer: "{{ answer.answer }}"}
optimise:
  knobs:
    answer: {prompt: ["Think, then answer {{ question }} by {{ facts }}"], schema_order: true}
    facts: {prompt: ["Briefly: facts about {{ question }}"]}
"""
GAINS = {"base": 0.35, "think": 0.3, "order": 0.25}
"""The planted shares of right answers: at first, with the better prompt, with reasons first."""


def rows(count: int) -> list[dict[str, Any]]:
    """Questions with their answers; half of them are held out."""
    splits = ("dev", "held_out", "held_out", "train")
    return [
        {"id": f"q{n}", "question": f"q{n}", "expected": f"a{n}", "split": splits[n % 4]}
        for n in range(count)
    ]


def planted(
    gains: Mapping[str, float] = GAINS,
    salt: str = "",
    on_call: Callable[[], None] = lambda: None,
) -> FakeModel:
    """A model that is right with a planted probability, by the seed of the call."""

    def answer(request: ModelRequest) -> Any:
        on_call()
        text = request.messages[-1].content
        number = re.findall(r"q(\d+)", text)[0]
        if request.schema is None:
            return f"facts of q{number}"
        chance = gains["base"]
        chance += gains["think"] * text.startswith("Think")
        chance += gains["order"] * (next(iter(request.schema["properties"])) == "why")
        asked = f"{salt}\0{number}\0{request.sampling.seed}"
        draw = int.from_bytes(sha256(asked.encode()).digest()[:6]) / 2**48
        right = f"a{number}" if draw < chance else "no"
        return {"answer": right, "why": "so"}

    return FakeModel(answer, model="planted")


def flow() -> Any:
    """The workflow of the studies."""
    return weft.loads(FLOW)


def named(model: FakeModel) -> dict[str, FakeModel]:
    """The model by the name that the workflow has for it."""
    return {"small": model}
