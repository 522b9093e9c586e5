"""Each loop with the embedded model: an answer or a typed error, whatever it writes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

import weft
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.loops import make_agent
from weft.agents.tools import Toolbox
from weft.core.errors import ModelNotFound
from weft.engine import RunOptions
from weft.serving.local import LocalModel, LocalOptions

pytestmark = pytest.mark.model


@weft.tool
def price(item: str) -> int:
    """What an item costs, in pounds."""
    return {"tea": 3, "coffee": 4}[item]


async def outcome(agent: str, constrain: str) -> str:
    try:
        model = LocalModel("smollm2-135m-instruct", LocalOptions(max_string_chars=60))
    except ModelNotFound as missing:
        pytest.skip(str(missing))
    async with aclosing(model):
        options = AgentOptions(
            rounds=1,
            calls=2,
            max_tokens=300 if constrain == "auto" else 64,
            constrain=constrain,  # type: ignore[arg-type]
            schema={"type": "object", "properties": {"cheaper": {"enum": ["tea", "coffee"]}},
                    "required": ["cheaper"], "additionalProperties": False},
        )  # fmt: skip
        made = make_agent(agent, Toolbox(price), model, options)
        end = await run_agent(
            made, "Is tea or coffee cheaper?", options=RunOptions(deadline_s=120.0)
        )
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
        ("react", "never", {"answer", "AgentError"}),
        ("divide", "never", {"answer", "AgentError"}),
        ("parallel-react", "auto", {"CapabilityError"}),
    ],
)
def test_it_ends_with_an_answer_or_a_typed_error(
    agent: str, constrain: str, allowed: set[str]
) -> None:
    assert asyncio.run(outcome(agent, constrain)) in allowed
