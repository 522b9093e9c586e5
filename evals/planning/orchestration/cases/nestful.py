"""NESTFUL: gold sequences of nested calls of invented and real services."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

from evals.planning.data import load
from evals.planning.orchestration.task import Canned, Task
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref, Value, refs_in

_FILES = (
    "planner/nestful/non-executable-glaive-data.json",
    "planner/nestful/non-executable-sgd-data.json",
)
_REFERENCE = re.compile(r"\$(var\d+)((?:\.\w+|\[\d+\])*)\$")
_RESULT = "var_result"


def tasks() -> list[Task]:
    """All 215 items. Raises: `Skipped`."""
    return [
        _task(f"{name.split('-')[-2]}_{place}", item)
        for name in _FILES
        for place, item in enumerate(load(name))
    ]


def _task(name: str, item: Mapping[str, Any]) -> Task:
    numbers: dict[str, int] = {}
    steps = []
    results: tuple[Ref, ...] = ()
    for number, call in enumerate(item["output"], 1):
        arguments = {key: _value(each, numbers) for key, each in call["arguments"].items()}
        if call["name"] == _RESULT:
            results = tuple(refs_in(arguments))
        else:
            steps.append(PlanStep(number, call["name"].replace(".", "_"), arguments))
            numbers[call.get("label", "")] = number
    plan = Plan(tuple(steps), results)
    return Task(name, item["input"], plan, _tools(plan), "done")


def _value(given: Any, numbers: Mapping[str, int]) -> Value:
    """An argument; text with a reference inside becomes the list of its pieces.

    A reference to a call that there is not (six in the data) stays the text it is.
    """
    if isinstance(given, Mapping):
        return {key: _value(each, numbers) for key, each in given.items()}
    if isinstance(given, list):
        return tuple(_value(each, numbers) for each in given)
    if not isinstance(given, str):
        return given
    pieces: list[Value] = []
    at = 0
    for found in _REFERENCE.finditer(given):
        if found[1] in numbers:
            pieces += [given[at : found.start()]] if found.start() > at else []
            pieces.append(Ref(numbers[found[1]], _path(found[2])))
            at = found.end()
    pieces += [given[at:]] if at < len(given) else []
    return pieces[0] if len(pieces) == 1 else tuple(pieces) if pieces else given


def _path(written: str) -> tuple[str | int, ...]:
    names = re.findall(r"\.(\w+)|\[(\d+)\]", written)
    return tuple(name or int(index) for name, index in names)


def _tools(plan: Plan) -> tuple[Canned, ...]:
    """One tool for each name, whose results have every field that the plan refers to."""
    paths: dict[str, list[tuple[str | int, ...]]] = {step.tool: [] for step in plan.steps}
    by_number = {step.number: step for step in plan.steps}
    for ref in chain(plan.results, *(step.refs for step in plan.steps)):
        paths[by_number[int(ref.source)].tool].append(ref.path)
    return tuple(_tool(name, found) for name, found in paths.items())


def _tool(name: str, paths: list[tuple[str | int, ...]]) -> Canned:
    shape: Any = {}
    for path in filter(None, paths):
        inner = shape
        for key, following in zip(path, (*path[1:], None), strict=True):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(key, int):
                inner.extend({} for _ in range(key + 1 - len(inner)))
                inner = inner[key]
            else:
                inner = inner.setdefault(key, empty if following is not None else f"the {key}")
    result = shape or f"the result of {name}"
    return Canned(ToolSpec(name, "", {"type": "object"}), lambda _: result)
