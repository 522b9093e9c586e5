"""Hamilton's async driver: one async function per task, whose parameter names are its parents."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from hamilton import ad_hoc_utils, base
from hamilton.async_driver import AsyncDriver

from evals.engine.cases import Case, Tally, Task
from evals.engine.systems import Program


def build(case: Case, tally: Tally) -> Program:
    """A driver over a module that holds the functions of `case`."""
    names = [task.name for task in case.tasks]
    functions = [
        _function(task, [names[parent] for parent in task.parents], tally) for task in case.tasks
    ]
    module = ad_hoc_utils.create_temporary_module(*functions)
    driver = AsyncDriver({}, module, result_builder=base.DictResult())

    async def program() -> None:
        await driver.execute([names[-1]])

    return program


def _function(task: Task, parents: list[str], tally: Tally) -> Callable[..., Any]:
    async def work(**_: int) -> int:
        await tally.work(task.sleep_s)
        return 1

    parameters = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=int) for name in parents
    ]
    work.__name__ = task.name
    work.__signature__ = Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    work.__annotations__ = {**dict.fromkeys(parents, int), "return": int}
    return work
