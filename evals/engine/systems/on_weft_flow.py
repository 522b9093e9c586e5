"""weft as one writes it in Python: `weft.Flow`, as it is and at other durabilities.

Each run is given another input, so that it is a run of its own. What it leaves in the journal is
checked by its outputs; the journal is the user's own, in `WEFT_HOME`.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import weft
from evals.engine.cases import ROLES, Case, Task
from evals.engine.systems import Program, tools
from weft.durability.journal.sqlite import SqliteJournal


def build(system: str, case: Case, folder: Path) -> Program:
    """The flow of `case`, run at the durability that the system's name ends in."""
    return runs_of(flow_of(case), case, settings_of(system, folder))


def runs_of(flow: weft.Flow, case: Case, settings: dict[str, Any]) -> Program:
    """A program that runs `flow` with a new input each time, and looks at what it came to."""
    numbers = count(1)

    async def program() -> None:
        first = next(numbers)
        result = await flow.run({"first": first, **inputs_of(case)}, **settings)
        if not result.ok or not _whole(case, first, result["last"]):
            raise RuntimeError(f"{result.status}: {result.reasons or result.outputs}")

    return program


def settings_of(system: str, folder: Path) -> dict[str, Any]:
    """What differs from the defaults."""
    durability = system.removeprefix("weft_flow").removeprefix("_")
    if durability == "power_safe":
        return {"journal": SqliteJournal(folder / "power_safe.sqlite", power_safe=True)}
    return {"durability": durability} if durability else {}


def inputs_of(case: Case) -> dict[str, Any]:
    """The items of a map; else nothing."""
    return {"items": list(range(len(case.tasks)))} if case.shape == "map" else {}


def flow_of(case: Case) -> weft.Flow:
    """One node for each task; a map or a loop where the case is one."""
    flow = weft.Flow(case.name)
    first = flow.input("first", int)
    if case.shape == "map":
        items = flow.input("items", list[int])
        flow.output(last=flow.map(items, lambda item: flow.tool(tools.step, item), name="all"))
    elif case.shape == "conversation":
        messages = flow.loop(
            [],
            lambda messages, iteration: flow.tool(tools.turn, first, iteration, messages),
            until=f"{{{{ messages | length == {2 * len(case.tasks)} }}}}",
            max=len(case.tasks),
            name="talk",
        )
        flow.output(last=messages)
    else:
        handles: list[Any] = []
        for task in case.tasks:
            parents = [handles[place] for place in task.parents]
            handles.append(_node(flow, task, parents or [first]))
        flow.output(last=handles[-1])
    return flow


def _node(flow: weft.Flow, task: Task, values: list[Any]) -> Any:
    if task.sleep_s:
        return flow.tool(tools.rest, values, task.sleep_s, name=task.name)
    if len(values) > 1:
        return flow.tool(tools.gather, values, name=task.name)
    return flow.tool(tools.step, *values, name=task.name)


def _whole(case: Case, first: int, last: Any) -> bool:
    nodes = len(case.tasks)
    if case.shape == "chain":
        return bool(last == first + nodes)
    if case.shape == "map":
        return bool(last == list(range(1, nodes + 1)))
    if case.shape == "conversation":
        return len(last) == nodes * len(ROLES)
    return bool(last == len(case.tasks[-1].parents))
