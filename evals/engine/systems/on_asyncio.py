"""Bare asyncio, the floor: what one writes by hand for each shape, one task per node.

    chain, conversation  each task is created and awaited, one after the other
    fanout, map          tasks are created together and awaited together with `gather`
    dag                  one task per node, which awaits the tasks of its parents first

Nothing else: no events, no errors caught, no limits, nothing stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from evals.engine.cases import TALLY, Case, Message, Task, two_messages
from evals.engine.systems import Program


def build(_system: str, case: Case, _folder: Path) -> Program:
    """The program for the shape of `case`."""
    programs = {
        "chain": _chain,
        "conversation": _conversation,
        "dag": _dag,
        "fanout": _fanout,
        "map": _map,
    }
    return programs[case.shape](case)


def _chain(case: Case) -> Program:
    async def program() -> None:
        for task in case.tasks:
            await asyncio.create_task(TALLY.work(task.sleep_s))

    return program


def _conversation(case: Case) -> Program:
    talks = count(1)

    async def turn(talk: int, number: int, messages: list[Message]) -> list[Message]:
        await TALLY.work(0.0)
        return [*messages, *two_messages(talk, number)]

    async def program() -> None:
        talk = next(talks)
        messages: list[Message] = []
        for number in range(len(case.tasks)):
            messages = await asyncio.create_task(turn(talk, number, messages))

    return program


def _fanout(case: Case) -> Program:
    source, *branches, join = case.tasks

    async def program() -> None:
        await asyncio.create_task(TALLY.work(source.sleep_s))
        await _side_by_side(branches)
        await asyncio.create_task(TALLY.work(join.sleep_s))

    return program


def _map(case: Case) -> Program:
    async def program() -> None:
        await _side_by_side(case.tasks)

    return program


async def _side_by_side(tasks: Sequence[Task]) -> None:
    started = [asyncio.create_task(TALLY.work(task.sleep_s)) for task in tasks]
    await asyncio.gather(*started)  # noqa: TID251 - the cheapest way is the floor


def _dag(case: Case) -> Program:
    async def node(parents: list[asyncio.Task[None]], sleep_s: float) -> None:
        for parent in parents:
            await parent
        await TALLY.work(sleep_s)

    async def program() -> None:
        tasks: list[asyncio.Task[None]] = []
        for task in case.tasks:
            parents = [tasks[place] for place in task.parents]
            tasks.append(asyncio.create_task(node(parents, task.sleep_s)))
        await tasks[-1]

    return program
