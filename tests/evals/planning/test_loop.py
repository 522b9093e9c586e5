"""LLMCompiler's loop as published: its poll floor, its wait for the planner, its hang."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from evals.planning.orchestration.loop import INTERVAL_S, Loop
from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.script import Style, script
from evals.planning.orchestration.setting import Speed
from evals.planning.orchestration.stall import STALL_S, lag_s
from evals.planning.orchestration.task import Canned, Task
from evals.planning.orchestration.tools import CannedTools
from tests.evals.planning.tasks import DIAMOND, chain
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.testing import FakeClock

_ASKED = ModelRequest((Message("user", "Plan."),))
_AT_ONCE = Speed(0.0, 0.0)
_STYLE = Style(0, 0)


def _model(task: Task, speed: Speed = _AT_ONCE) -> ScriptedModel:
    return ScriptedModel(script(task, "plan", _STYLE), speed)


@pytest.mark.parametrize("length", [10, 60])
def test_each_level_of_a_chain_costs_a_poll(length: int) -> None:
    task = chain(length, median_s=0.0)
    loop = Loop(CannedTools(task.tools))
    clock = FakeClock()
    clock.run(loop.batch(_model(task), _ASKED))
    assert clock.now() == pytest.approx((length + 1) * INTERVAL_S)


def test_streaming_polls_too_when_the_plan_has_been_written() -> None:
    task = chain(10, median_s=0.004)
    clock = FakeClock()
    clock.run(Loop(CannedTools(task.tools)).streaming(_model(task), _ASKED))
    assert clock.now() >= 10 * INTERVAL_S


@pytest.mark.parametrize("way", ["streaming", "batch"])
def test_it_comes_to_the_right_results(way: str) -> None:
    tools = CannedTools(DIAMOND.tools)
    loop = Loop(tools)
    FakeClock().run(getattr(loop, way)(_model(DIAMOND, Speed(0.05, 0.02)), _ASKED))
    assert loop.results == {1: "a", 2: "a+1", 3: "a+2", 4: "['a+1', 'a+2']"}
    assert len(tools.started) == 4


def test_a_ready_step_waits_for_the_planners_next_line() -> None:
    clock = FakeClock()
    lag = clock.run(lag_s("llmcompiler_loop", clock))
    assert STALL_S - 0.1 < lag < STALL_S


def _raise(_: Mapping[str, Any]) -> Any:
    raise ValueError("no")


@pytest.mark.parametrize("way", ["streaming", "batch"])
def test_a_call_that_raises_hangs_it(way: str) -> None:
    broken = tuple(Canned(tool.spec, _raise, 0.1) for tool in DIAMOND.tools)
    task = replace(DIAMOND, tools=broken)

    async def main() -> None:
        loop = Loop(CannedTools(task.tools))
        async with asyncio.timeout(60):
            await getattr(loop, way)(_model(task), _ASKED)

    with pytest.raises(TimeoutError):
        FakeClock().run(main())
