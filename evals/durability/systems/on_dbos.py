"""DBOS on its SQLite system database: a workflow of steps, in a task group where they fan out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from time import perf_counter
from typing import Any

from dbos import DBOS

from evals.durability.cases import CHAIN, WIDTH, said, turns_of

Messages = list[tuple[str, str]]


def _next(number: int) -> int:
    return number + 1


async def _next_soon(number: int) -> int:
    return number + 1


def _say(talk: int, turn: int, messages: Messages) -> Messages:
    return [*messages, *((role, said(talk, turn, role)) for role in ("user", "assistant"))]


_step: Any = DBOS.step()(_next)
_branch: Any = DBOS.step()(_next_soon)
_turn: Any = DBOS.step()(_say)


def _steps(length: int) -> int:
    done = 0
    for _ in range(length):
        done = int(_step(done))
    return done


async def _branches(width: int) -> int:
    first: int = await _branch(0)
    async with asyncio.TaskGroup() as group:
        found = [group.create_task(_branch(0)) for _ in range(width)]
    last: int = await _branch(first - 1)
    return first + sum(task.result() for task in found) + last


def _turns(talk: int, turns: int) -> int:
    messages: Messages = []
    for turn in range(turns):
        messages = _turn(talk, turn, messages)
    return len(messages)


_chain: Any = DBOS.workflow()(_steps)
_fanout: Any = DBOS.workflow()(_branches)
_talk: Any = DBOS.workflow()(_turns)


class System:
    """One database for all workflows; the process can have only one."""

    def __init__(self, system: str, case: str, folder: Path) -> None:
        self._case = case
        self._runs = 0
        DBOS(
            config={
                "name": "durability",
                "system_database_url": f"sqlite:///{folder / system}.sqlite",
                "run_admin_server": False,
                "log_level": "ERROR",
            }
        )
        DBOS.launch()

    def run(self) -> float:
        self._runs += 1
        if self._case == "fanout_1000":
            return asyncio.run(_timed(_fanout(WIDTH), WIDTH + 2))
        began = perf_counter()
        if self._case == "chain_100":
            due, done = CHAIN, _chain(CHAIN)
        else:
            due = 2 * turns_of(self._case)
            done = _talk(self._runs, due // 2)
        took = perf_counter() - began
        _check(done, due)
        return took

    def close(self) -> None:
        DBOS.destroy()


async def _timed(workflow: Coroutine[Any, Any, int], due: int) -> float:
    began = perf_counter()
    done = await workflow
    took = perf_counter() - began
    _check(done, due)
    return took


def _check(done: int, due: int) -> None:
    if done != due:
        raise RuntimeError(f"{done} of {due} steps")
