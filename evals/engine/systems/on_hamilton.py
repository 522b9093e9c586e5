"""Hamilton's async driver: one async function per task, whose parameter names are its parents."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from itertools import count
from pathlib import Path
from typing import Any

from hamilton import ad_hoc_utils, base
from hamilton.async_driver import AsyncDriver

from evals.engine.cases import ROLES, TALLY, Case, Message, Task, two_messages
from evals.engine.systems import Program, Unsupported

Function = Callable[..., Any]


def build(_system: str, case: Case, _folder: Path) -> Program:
    """A driver over a module that holds the functions of `case`."""
    if case.shape == "map":
        raise Unsupported("its async driver has no map over the items of a list")
    names = [task.name for task in case.tasks]
    talks = case.shape == "conversation"
    functions = [
        _turn(task, place, case)
        if talks
        else _function(task, [names[parent] for parent in task.parents])
        for place, task in enumerate(case.tasks)
    ]
    module = ad_hoc_utils.create_temporary_module(*functions)
    driver = AsyncDriver({}, module, result_builder=base.DictResult())
    runs = count(1)

    async def program() -> None:
        found = await driver.execute(names[-1:], inputs={"talk": next(runs)} if talks else None)
        if talks and len(found[names[-1]]) != len(case.tasks) * len(ROLES):
            raise RuntimeError(f"{len(found[names[-1]])} messages")

    return program


def _function(task: Task, parents: list[str]) -> Function:
    async def work(**_: int) -> int:
        await TALLY.work(task.sleep_s)
        return 1

    return _signed(work, task.name, dict.fromkeys(parents, int), int)


def _turn(task: Task, number: int, case: Case) -> Function:
    async def turn(talk: int, **before: list[Message]) -> list[Message]:
        await TALLY.work(0.0)
        messages = next(iter(before.values()), [])
        return [*messages, *two_messages(talk, number)]

    parents = dict.fromkeys((case.tasks[parent].name for parent in task.parents), list)
    return _signed(turn, task.name, {"talk": int, **parents}, list)


def _signed(function: Function, name: str, given: dict[str, type], returned: type) -> Function:
    """The driver draws its edges by the names of parameters, which are made here."""
    parameters = [
        Parameter(parameter, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
        for parameter, kind in given.items()
    ]
    function.__name__ = name
    function.__signature__ = Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    function.__annotations__ = {**given, "return": returned}
    return function
