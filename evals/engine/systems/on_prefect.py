"""Prefect: a flow of tasks on the server that it starts by itself, with its SQLite database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from prefect import flow, task

from evals.engine.cases import ROLES, TALLY, Case, Message, case_named, two_messages
from evals.engine.systems import Program


@task
async def _step(sleep_s: float) -> int:
    await TALLY.work(sleep_s)
    return 1


@task
async def _turn(talk: int, number: int, messages: list[Message]) -> list[Message]:
    await TALLY.work(0.0)
    return [*messages, *two_messages(talk, number)]


@flow
async def _steps(length: int) -> int:
    return sum([await _step(0.0) for _ in range(length)])


@flow
async def _turns(talk: int, turns: int) -> int:
    messages: list[Message] = []
    for number in range(turns):
        messages = await _turn(talk, number, messages)
    return len(messages) // len(ROLES)


@flow
async def _graph(name: str) -> int:
    tasks: list[asyncio.Task[int]] = []
    async with asyncio.TaskGroup() as group:
        for node in case_named(name).tasks:
            parents = [tasks[place] for place in node.parents]
            tasks.append(group.create_task(_after(parents, node.sleep_s)))
    return sum(each.result() for each in tasks)


async def _after(parents: Sequence[asyncio.Task[int]], sleep_s: float) -> int:
    for parent in parents:
        await parent
    return await _step(sleep_s)


def build(_system: str, case: Case, _folder: Path) -> Program:
    """The flow of `case`."""
    nodes, talks = len(case.tasks), count(1)

    async def program() -> None:
        if case.shape == "chain":
            done = await _steps(nodes)
        elif case.shape == "conversation":
            done = await _turns(next(talks), nodes)
        else:
            done = await _graph(case.name)
        if done != nodes:
            raise RuntimeError(f"{done} of {nodes} tasks")

    return program
