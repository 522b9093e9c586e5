"""A task with its gold plan and the tools it needs, and what the plan comes to. Runs no system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref, Value


@dataclass(frozen=True, slots=True)
class Canned:
    """A tool that answers from nothing but its arguments, after a while.

    `median_s`: the median of its log-normal latency.
    """

    spec: ToolSpec
    result: Callable[[Mapping[str, Any]], Any]
    median_s: float = 0.3


@dataclass(frozen=True, slots=True)
class Task:
    """A question, the plan that a perfect planner writes for it, and the right answer.

    Gold plans here have neither maps nor conditions: those of the data sets have none.
    """

    id: str
    question: str
    plan: Plan
    tools: tuple[Canned, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class Call:
    """One step of a gold plan with its references replaced, and what it comes to."""

    number: int
    tool: str
    arguments: Mapping[str, Any]
    result: Any


def work_out(task: Task) -> tuple[Call, ...]:
    """The calls of the gold plan in the order written, one after the other."""
    tools = {tool.spec.name: tool for tool in task.tools}
    results: dict[int, Any] = {}
    calls = []
    for step in task.plan.steps:
        arguments = resolved(step.arguments, results)
        results[step.number] = tools[step.tool].result(arguments)
        calls.append(Call(step.number, step.tool, arguments, results[step.number]))
    return tuple(calls)


def resolved(value: Value, results: Mapping[int, Any]) -> Any:
    """`value` with every reference replaced by what it refers to, tuples as lists."""
    if isinstance(value, Ref):
        found = results[int(value.source)]
        for key in value.path:
            found = found[key]
        return found
    if isinstance(value, Mapping):
        return {name: resolved(inner, results) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [resolved(inner, results) for inner in value]
    return value


def levels(steps: Sequence[PlanStep]) -> list[list[int]]:
    """Step numbers in rounds: each step right after the last round that it needs."""
    level: dict[int, int] = {}
    for step in steps:
        level[step.number] = 1 + max((level[number] for number in step.needs), default=-1)
    rounds: list[list[int]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for number, at in level.items():
        rounds[at].append(number)
    return rounds
