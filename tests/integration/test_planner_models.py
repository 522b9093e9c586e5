"""Plans of real models, which are small and hold to nothing by themselves, held to the grammar."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from evals.planning.validity import Tally, tallied
from tests.conformance.model_client import GRAMMAR, SCHEMA, asking
from tests.live_vllm import NAME, LiveVllm
from tests.profile import share
from weft.core.ports import ModelClient, Sampling, complete
from weft.planner.grammar.limits import Constrain
from weft.serving.local import LocalModel, LocalOptions
from weft.serving.openai import OpenAIModel


def plans_of(model: ModelClient, constrain: Constrain, number: int) -> Tally:
    async def main() -> Tally:
        async with aclosing(model):
            return await tallied(model, constrain, range(0, 8 * number, 8), at_once=number)

    return asyncio.run(main())


@pytest.mark.model
@pytest.mark.parametrize("constrain", ["plan", "line"])
def test_a_local_model_writes_plans(constrain: Constrain) -> None:
    number = share(4)
    tally = plans_of(LocalModel(NAME, LocalOptions(max_batch=number)), constrain, number)
    assert (tally.plans, tally.errors, tally.unwritten) == (number, {}, {})


@pytest.mark.vllm
@pytest.mark.parametrize("constrain", ["plan", "line"])
def test_a_model_on_vllm_writes_plans(live_vllm: LiveVllm, constrain: Constrain) -> None:
    number = share(8)
    tally = plans_of(OpenAIModel(live_vllm.base_url, NAME), constrain, number)
    assert (tally.plans, tally.errors, tally.unwritten) == (number, {}, {})


@pytest.mark.vllm
def test_schemas_and_grammars_are_held_on_one_server(live_vllm: LiveVllm) -> None:
    async def main() -> None:
        async with aclosing(OpenAIModel(live_vllm.base_url, NAME)) as client:
            sampling = Sampling(max_tokens=40, temperature=0)
            for _ in range(2):
                held = await complete(client, asking(schema=SCHEMA, sampling=sampling))
                assert held.text.startswith("{")
                free = await complete(client, asking(grammar=GRAMMAR, sampling=sampling))
                assert free.text.startswith(("red and ", "green and "))

    asyncio.run(main())
