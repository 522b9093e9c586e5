"""Strategies that work by prompt, on a real model: answers within the budget, proofs that hold."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from tests.live_vllm import NAME, LiveVllm
from weft.core.errors import ModelNotFound
from weft.core.ports import ModelClient
from weft.engine import RunOptions
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Document, Question
from weft.reasoning.strategies import make_strategy
from weft.reasoning.strategy import run_thought
from weft.reasoning.thought import Thought
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.openai import OpenAIModel

pytestmark = pytest.mark.model
TOWER = Document(
    "tower.txt",
    "The tower stands on the Champ de Mars in Paris.\n\nIt is 330 metres tall.\n\n"
    "Gustave Eiffel's company built it from 1887 to 1889.\n\nIts base measures 125 metres.",
)
RIVERS = Document("rivers.csv", "Bonn,lies on,Rhine\nRhine,flows to,North Sea\n")
ASKED = {
    "skeleton": (Question("What are some tips for staying healthy?"), {"points": 3}),
    "map-reduce": (
        Question("How tall is the tower?", documents=(TOWER,)),
        {"part_tokens": 40, "note_tokens": 48},
    ),
    "mirage": (
        Question("Where does the river of Bonn flow to?", documents=(RIVERS,)),
        {"chains": 2, "steps": 2, "step_tokens": 48},
    ),
    "abstraction": (Question("Ann has 12 apples and eats 5. How many are left?"), {"steps": 3}),
    "self-refine": (Question("Explain in a sentence why the sky is blue."), {}),
    "pasta": (Question("Compare cats and dogs."), {}),
    "sprint": (Question("Which is more, 7 * 8 or 5 * 11?"), {}),
    "leap": (Question("Ann has 12 apples and eats 5. How many are left?"), {"turn": 16}),
}


async def check(model: ModelClient, name: str, budget: int) -> Thought:
    question, settings = ASKED[name]
    options = ThinkOptions(
        width=3, budget=budget, rounds=3, max_tokens=48, answer_tokens=24, settings=settings
    )
    strategy = make_strategy(name, model, options)
    thought = await run_thought(strategy, question, options=RunOptions(deadline_s=600.0))
    counts = thought.counts
    assert thought.answer.strip()
    assert 0 < counts.critical_path_tokens <= counts.total_tokens <= budget
    assert thought.tree is not None
    assert thought.tree.state.ended
    texts = {document.name: document.text for document in question.documents}
    for piece in thought.evidence:
        assert texts[piece.document][piece.start : piece.end] == piece.text
    assert bool(thought.evidence) == (name == "map-reduce") or name == "mirage"
    return thought


def test_the_embedded_model() -> None:
    async def main() -> None:
        try:
            model = LocalModel(NAME, LocalOptions(max_batch=4))
        except ModelNotFound as missing:
            pytest.skip(str(missing))
        async with aclosing(model):
            for name in ("skeleton", "map-reduce", "pasta"):
                await check(model, name, budget=120)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.parametrize("name", ASKED)
def test_a_model_on_vllm(name: str, live_vllm: LiveVllm) -> None:
    async def main() -> None:
        async with aclosing(OpenAIModel(live_vllm.base_url, NAME)) as model:
            await check(model, name, budget=260)

    asyncio.run(main())
