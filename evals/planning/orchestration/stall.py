"""A planner that falls silent for two seconds: when does a step start whose inputs are there?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from evals.engine.rows import Row
from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.script import Style, Turn, plan_text
from evals.planning.orchestration.setting import Speed
from evals.planning.orchestration.systems import SYSTEMS
from evals.planning.orchestration.task import Canned, Task
from evals.planning.orchestration.tools import CannedTools
from weft.core.ports import Clock
from weft.core.ports.clock import SystemClock
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref
from weft.testing import FakeClock

CASE: Final = "stall"
STALL_S: Final = 2.0
_SYSTEMS: Final = ("compiler", "llmcompiler_loop")
_SPEED: Final = Speed(0.01, 0.001)
_TOOL_S: Final = 0.05


def _tool(name: str) -> Canned:
    schema = {"type": "object", "properties": {"of": {}}}
    return Canned(ToolSpec(name, "", schema), lambda _: f"{name} done", _TOOL_S)


_TASK: Final = Task(
    "stall",
    "What follows from the first?",
    Plan(
        (
            PlanStep(1, "first", {"of": "the question"}),
            PlanStep(2, "second", {"of": Ref(1)}),
            PlanStep(3, "third", {"of": "the question"}),
        ),
        (Ref(2), Ref(3)),
    ),
    (_tool("first"), _tool("second"), _tool("third")),
    "this",
)


async def lag_s(system: str, clock: Clock) -> float:
    """How long step 2 waited after step 1 had ended, while the planner was silent."""
    plan = Turn(plan_text(_TASK, Style(0, 0)), stall_after=2, stall_s=STALL_S)
    model = ScriptedModel((plan, Turn(answer=_TASK.answer)), _SPEED)
    tools = _Timed(_TASK.tools)
    await SYSTEMS[system].run(_TASK, model, tools, clock)
    starts = {name: started for name, _, started in tools.started}
    return starts["second"] - tools.ended["first"]


def stall_rows() -> list[Row]:
    """The lag on a virtual clock, where computing takes no time. Not inside a running loop."""
    rows = []
    for system in _SYSTEMS:
        clock = FakeClock()
        lag = clock.run(lag_s(system, clock))
        rows.append(Row(CASE, system, "start_lag_ms", lag * 1000, "ms, virtual"))
    return rows


async def real_stall_rows(rounds: int) -> list[Row]:
    """The worst lag of `rounds` on the machine's clock, with all that computing takes."""
    clock = SystemClock()
    return [
        Row(
            CASE,
            system,
            "start_lag_ms_real",
            max([await lag_s(system, clock) for _ in range(rounds)]) * 1000,
            f"ms, worst of {rounds}",
        )
        for system in _SYSTEMS
    ]


class _Timed(CannedTools):
    """Tells also when a call ended, on the loop's clock."""

    def __init__(self, tools: tuple[Canned, ...]) -> None:
        super().__init__(tools)
        self.ended: dict[str, float] = {}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        result = await super().call(name, arguments)
        self.ended[name] = asyncio.get_running_loop().time()
        return result
