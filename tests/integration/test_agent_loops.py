"""Each loop with a real model: an answer or a typed error, whatever it writes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

import weft
from tests.live_vllm import NAME, LiveVllm
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.loops import make_agent
from weft.agents.tools import Toolbox
from weft.core.errors import ModelNotFound
from weft.core.ports import ModelClient
from weft.engine import RunOptions
from weft.planner.grammar.limits import Constrain
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.openai import OpenAIModel

pytestmark = pytest.mark.model
CHEAPER = {
    "type": "object",
    "properties": {"cheaper": {"enum": ["tea", "coffee"]}},
    "required": ["cheaper"],
    "additionalProperties": False,
}


@weft.tool
def price(item: str) -> int:
    """What an item costs, in pounds."""
    return {"tea": 3, "coffee": 4}[item]


async def outcome(agent: str, model: ModelClient, constrain: Constrain = "auto") -> str:
    """ "answer", or the name of the error."""
    max_tokens = 300 if constrain == "auto" else 64
    options = AgentOptions(2, 2, CHEAPER, constrain=constrain, max_tokens=max_tokens)
    made = make_agent(agent, Toolbox(price), model, options)
    question = "Is tea or coffee cheaper?"
    end = await run_agent(made, question, options=RunOptions(deadline_s=600.0))
    if end.answer is not None:
        assert end.answer.value["cheaper"] in ("tea", "coffee")
        assert end.result.status == "succeeded"
        return "answer"
    assert end.result.status == "failed", end.result.reasons
    assert not end.result.leaked
    return end.result.reasons[-1].split(": ")[1]


@pytest.mark.parametrize(
    ("agent", "constrain", "allowed"),
    [
        ("react", "auto", {"answer"}),
        ("divide", "auto", {"answer"}),
        ("react", "never", {"answer", "ModelGaveUp"}),
        ("divide", "never", {"answer", "ModelGaveUp"}),
        ("parallel-react", "auto", {"CapabilityError"}),
    ],
)
def test_the_embedded_model(agent: str, constrain: Constrain, allowed: set[str]) -> None:
    async def main() -> str:
        try:
            model = LocalModel(NAME, LocalOptions(max_string_chars=60))
        except ModelNotFound as missing:
            pytest.skip(str(missing))
        async with aclosing(model):
            return await outcome(agent, model, constrain)

    assert asyncio.run(main()) in allowed


@pytest.mark.vllm
@pytest.mark.parametrize("agent", ["react", "divide", "parallel-react"])
def test_a_model_on_vllm(agent: str, live_vllm: LiveVllm) -> None:
    async def main() -> str:
        async with aclosing(OpenAIModel(live_vllm.base_url, NAME)) as model:
            return await outcome(agent, model)

    assert asyncio.run(main()) in {"answer", "ModelGaveUp"}
