"""Small tasks that tests share; they need no data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.planning.orchestration.task import Canned, Task
from weft.core.values import ToolSpec
from weft.planner.plan import Plan, PlanStep, Ref

_SCHEMA = {"type": "object", "properties": {"of": {}, "plus": {"type": "integer"}}}


def tool(name: str, median_s: float = 0.3) -> Canned:
    """A tool that says what it got."""

    def result(arguments: Mapping[str, Any]) -> Any:
        plus = f"+{arguments['plus']}" if "plus" in arguments else ""
        return f"{arguments['of']}{plus}"

    return Canned(ToolSpec(name, "Says what it got.", _SCHEMA), result, median_s)


DIAMOND = Task(
    "diamond",
    "What comes together?",
    Plan(
        (
            PlanStep(1, "echo", {"of": "a"}),
            PlanStep(2, "echo", {"of": Ref(1), "plus": 1}),
            PlanStep(3, "echo", {"of": Ref(1), "plus": 2}),
            PlanStep(4, "echo", {"of": (Ref(2), Ref(3))}),
        ),
        (Ref(4),),
    ),
    (tool("echo"),),
    "both",
)


def chain(length: int, median_s: float) -> Task:
    """Calls that each need the one before."""
    steps = [PlanStep(1, "echo", {"of": "a", "plus": 1})]
    steps += [PlanStep(n, "echo", {"of": Ref(n - 1), "plus": n}) for n in range(2, length + 1)]
    plan = Plan(tuple(steps), (Ref(length),))
    return Task("chain", "Where does it end?", plan, (tool("echo", median_s),), "there")
