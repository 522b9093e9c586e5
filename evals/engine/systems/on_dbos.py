"""DBOS on its SQLite system database: a workflow of steps, in a task group where they fan out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from dbos import DBOS

from evals.engine.cases import ROLES, TALLY, Case, Message, case_named, two_messages
from evals.engine.systems import Program


def _next(number: int) -> int:
    TALLY.done += 1
    return number + 1


async def _branch(sleep_s: float) -> int:
    await TALLY.work(sleep_s)
    return 1


def _turn(talk: int, number: int, messages: list[Message]) -> list[Message]:
    TALLY.done += 1
    return [*messages, *two_messages(talk, number)]


_next_step: Any = DBOS.step()(_next)
_branch_step: Any = DBOS.step()(_branch)
_turn_step: Any = DBOS.step()(_turn)


def _steps(length: int) -> int:
    done = 0
    for _ in range(length):
        done = int(_next_step(done))
    return done


def _turns(talk: int, turns: int) -> int:
    messages: list[Message] = []
    for number in range(turns):
        messages = _turn_step(talk, number, messages)
    return len(messages) // len(ROLES)


async def _graph(name: str) -> int:
    case = case_named(name)
    tasks: list[asyncio.Task[int]] = []
    async with asyncio.TaskGroup() as group:
        for task in case.tasks:
            parents = [tasks[place] for place in task.parents]
            tasks.append(group.create_task(_after(parents, task.sleep_s)))
    return sum(task.result() for task in tasks)


async def _after(parents: Sequence[asyncio.Task[int]], sleep_s: float) -> int:
    for parent in parents:
        await parent
    done: int = await _branch_step(sleep_s)
    return done


_steps_workflow: Any = DBOS.workflow()(_steps)
_turns_workflow: Any = DBOS.workflow()(_turns)
_graph_workflow: Any = DBOS.workflow()(_graph)
_launched: list[Path] = []


def build(_system: str, case: Case, folder: Path) -> Program:
    """The workflow of `case`. One database for all: a process can have only one."""
    _launch(folder)
    nodes, talks = len(case.tasks), count(1)
    if case.shape == "chain":
        return lambda: _check(_steps_workflow(nodes), nodes)
    if case.shape == "conversation":
        return lambda: _check(_turns_workflow(next(talks), nodes), nodes)

    async def program() -> None:
        _check(await _graph_workflow(case.name), nodes)

    return program


def _launch(folder: Path) -> None:
    if _launched:
        return
    _launched.append(folder)
    DBOS(
        config={
            "name": "engine",
            "system_database_url": f"sqlite:///{folder / 'dbos'}.sqlite",
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    DBOS.launch()


def _check(done: int, due: int) -> None:
    if done != due:
        raise RuntimeError(f"{done} of {due} steps")
