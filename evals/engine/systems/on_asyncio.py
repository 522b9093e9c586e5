"""Bare asyncio, the floor: what one writes by hand for each shape, one task per node.

    chain   each task is created and awaited, one after the other
    fanout  the branches are created together and awaited together with `gather`
    dag     one task per node, which awaits the tasks of its parents first

Nothing else: no events, no errors caught, no limits, no results kept.
"""

from __future__ import annotations

import asyncio

from evals.engine.cases import Case, Tally
from evals.engine.systems import Program


def build(case: Case, tally: Tally) -> Program:
    """The program for the shape of `case`."""
    programs = {"chain": _chain, "fanout": _fanout, "dag": _dag}
    return programs[case.shape](case, tally)


def _chain(case: Case, tally: Tally) -> Program:
    async def program() -> None:
        for task in case.tasks:
            await asyncio.create_task(tally.work(task.sleep_s))

    return program


def _fanout(case: Case, tally: Tally) -> Program:
    source, *branches, join = case.tasks

    async def program() -> None:
        await asyncio.create_task(tally.work(source.sleep_s))
        tasks = [asyncio.create_task(tally.work(branch.sleep_s)) for branch in branches]
        await asyncio.gather(*tasks)  # noqa: TID251 - the cheapest way is the floor
        await asyncio.create_task(tally.work(join.sleep_s))

    return program


def _dag(case: Case, tally: Tally) -> Program:
    async def node(parents: list[asyncio.Task[None]], sleep_s: float) -> None:
        for parent in parents:
            await parent
        await tally.work(sleep_s)

    async def program() -> None:
        tasks: list[asyncio.Task[None]] = []
        for task in case.tasks:
            parents = [tasks[place] for place in task.parents]
            tasks.append(asyncio.create_task(node(parents, task.sleep_s)))
        await tasks[-1]

    return program
