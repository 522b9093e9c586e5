"""The evaluation beside GraphBit: every system makes the same calls, and prompts grow as told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evals.engine.rows import Lookup
from evals.graphbit import growth
from evals.graphbit.rounds import measure
from evals.graphbit.scenarios import SCENARIOS, Program, Scenario, answer_to
from evals.graphbit.systems import SYSTEMS, load
from evals.graphbit.worker import sample
from evals.scripted_server import ScriptedServer

CALLS = {
    "simple": 1,
    "sequential": 4,
    "parallel": 4,
    "conditional": 2,
    "memory": 1,
    "concurrent": 10,
}


async def sampled(program: Program, scenario: Scenario) -> dict[str, float]:
    try:
        return await sample(program, scenario)
    finally:
        assert program.close is not None
        await program.close()


@pytest.mark.parametrize("system", ["asyncio", "weft", "weft_none"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_a_run_makes_the_calls_of_its_scenario(
    system: str, scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    with ScriptedServer(answer_to) as server:

        async def once() -> dict[str, float]:
            return await sampled(load(system)(system, scenario, server.base_url), scenario)

        took = asyncio.run(once())
    assert server.requests == CALLS[scenario.name]
    assert took["wall_s"] > 0
    assert took["peak_bytes"] > 2**20


def test_a_run_with_a_wrong_answer_is_no_sample() -> None:
    with ScriptedServer(lambda _: "nonsense") as server:
        scenario = SCENARIOS["simple"]

        async def once() -> None:
            await sampled(load("asyncio")("asyncio", scenario, server.base_url), scenario)

        with pytest.raises(RuntimeError, match="answers where 1 are due"):
            asyncio.run(once())


def test_a_system_that_is_not_installed_says_so_in_its_rows() -> None:
    missing = dict.fromkeys(SYSTEMS, "no package for this machine")
    rows = measure(SCENARIOS["simple"], "http://127.0.0.1:9/v1", 1, missing)
    assert [row.system for row in rows] == list(SYSTEMS)
    assert {row.metric for row in rows} == {"skipped: no package for this machine"}
    assert {row.value for row in rows} == {None}


def test_every_stage_adds_its_answer_to_the_history_and_its_finding_to_the_state() -> None:
    figures = Lookup(growth.rows(stages=5))
    answer, finding = growth.WORDS + 12, 12
    assert figures("pipeline_5", "history", "added_by_a_stage") == answer
    assert figures("pipeline_5", "state", "added_by_a_stage") == finding
    asked = len(growth.TASK.split()) + 2
    assert figures("pipeline_5", "history", "last_prompt_tokens") == asked + 4 * answer
    assert figures("pipeline_5", "state", "last_prompt_tokens") == asked + 4 * finding + answer
    every = sum(asked + number * answer for number in range(5))
    assert figures("pipeline_5", "history", "prompt_tokens") == every
