"""WorFBench: gold graphs of subtasks, each of which is a call that waits for those before it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any

from evals.planning.data import load
from evals.planning.orchestration.task import Canned, Task
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref

FILES = ("planner/worfbench/toolbench.graph_eval.json", "planner/worfbench/wikihow.graph_eval.json")
_NODE = re.compile(r"^(\d+): (.*)$", re.MULTILINE)
_EDGE = re.compile(r"\((START|\d+),\s*(END|\d+)\)")
PERFORM = ToolSpec(
    "perform",
    "Does one subtask, after those whose results it is given.",
    {
        "type": "object",
        "properties": {
            "subtask": {"type": "string", "description": "what is done, in one sentence"},
            "after": {"type": "array", "description": "results of the subtasks that come before"},
        },
        "required": ["subtask"],
        "additionalProperties": False,
    },
    {"type": "string"},
)
_DO = Canned(
    PERFORM, lambda arguments: hashlib.sha256(arguments["subtask"].encode()).hexdigest()[:6]
)


def tasks() -> list[Task]:
    """All 376 items. Raises: `Skipped`."""
    return [_task(item) for name in FILES for item in load(name)]


def graph(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The subtasks by number, and the edges between them, without START and END."""
    nodes = dict(_NODE.findall(text))
    edges = [(one, other) for one, other in _EDGE.findall(text) if {one, other} <= nodes.keys()]
    return nodes, edges


def _task(item: Mapping[str, Any]) -> Task:
    nodes, edges = graph(item["conversations"][-1]["content"])
    before: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other in edges:
        before[other].append(one)
    numbers: dict[str, int] = {}
    steps: list[PlanStep] = []
    for node in TopologicalSorter(before).static_order():
        numbers[node] = len(steps) + 1
        after = tuple(Ref(numbers[each]) for each in before[node])
        more = {"after": after} if after else {}
        steps.append(PlanStep(numbers[node], "perform", {"subtask": nodes[node].strip(), **more}))
    needed = {number for step in steps for number in step.needs}
    results = tuple(Ref(step.number) for step in steps if step.number not in needed)
    question = item["conversations"][-2]["content"].split("\n", 1)[0].removeprefix("Task: ")
    return Task(item["id"], question, Plan(tuple(steps), results), (_DO,), "done")
