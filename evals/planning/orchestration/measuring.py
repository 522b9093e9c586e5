"""Runs one system on one task and takes its figures. Knows no table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.planning.orchestration.model import ScriptedModel
from evals.planning.orchestration.script import script
from evals.planning.orchestration.setting import Setting
from evals.planning.orchestration.systems import SYSTEMS
from evals.planning.orchestration.task import Task
from evals.planning.orchestration.tools import CannedTools
from weft.core.ports import Clock
from weft.core.ports.clock import SystemClock
from weft.testing import FakeClock


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. Tokens are those of all its model calls."""

    latency_s: float
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    tool_calls: int


class WrongAnswer(Exception):
    """A system did not answer what its script says, or did not make the calls of the gold plan."""


async def measured(system: str, task: Task, setting: Setting, clock: Clock) -> Measured:
    """Run `system` on `task` in the running loop. Raises: `WrongAnswer`."""
    chosen = SYSTEMS[system]
    turns = script(task, chosen.way, setting.style)
    model = ScriptedModel(turns, setting.speed, continuation=chosen.continuation)
    tools = CannedTools(task.tools, setting.seed, setting.scale)
    loop = asyncio.get_running_loop()
    started = loop.time()
    answer = await chosen.run(task, model, tools, clock)
    latency_s = loop.time() - started
    if not answer.endswith(task.answer) or len(tools.started) != len(task.plan.steps):
        made = f"{len(tools.started)} of {len(task.plan.steps)} calls"
        raise WrongAnswer(f"{system} on {task.id}: {answer!r} after {made}")
    usage = model.usage
    return Measured(
        latency_s,
        usage.requests,
        usage.prompt_tokens,
        usage.completion_tokens,
        len(tools.started),
    )


def in_virtual_time(
    systems: Iterable[str], tasks: Sequence[Task], setting: Setting
) -> dict[str, list[Measured]]:
    """All of `tasks` on all of `systems`, one after the other, in time that costs nothing."""
    clock = FakeClock()

    async def main() -> dict[str, list[Measured]]:
        return {
            system: [await measured(system, task, setting, clock) for task in tasks]
            for system in systems
        }

    return clock.run(main())


async def in_real_time(
    systems: Sequence[str], tasks: Sequence[Task], setting: Setting
) -> dict[str, list[Measured]]:
    """The same on the machine's clock, in the running loop; the systems take turns."""
    clock = SystemClock()
    found: dict[str, list[Measured]] = {system: [] for system in systems}
    for task in tasks:
        for system in systems:
            found[system].append(await measured(system, task, setting, clock))
    return found
