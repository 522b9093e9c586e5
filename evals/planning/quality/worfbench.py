"""WorFBench's tasks for a planner whose one tool does a subtask after others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evals.planning.data import load
from evals.planning.orchestration.cases.worfbench import FILES, PERFORM, graph
from evals.planning.quality.graph import Subtasks
from weft.core.values import ToolSpec
from weft.planner.plan import Plan

TOOLS: Final[tuple[ToolSpec, ...]] = (PERFORM,)
_QUESTION_CHARS: Final = 3000


@dataclass(frozen=True, slots=True)
class Item:
    """A task with the actions or interfaces there are, and the gold graph."""

    id: str
    question: str
    gold: Subtasks


def items() -> list[Item]:
    """All items; a very long list of actions is cut. Raises: `Skipped`."""
    return [
        Item(
            item["id"],
            item["conversations"][-2]["content"][:_QUESTION_CHARS],
            subtasks(item["conversations"][-1]["content"]),
        )
        for name in FILES
        for item in load(name)
    ]


def subtasks(text: str) -> Subtasks:
    """The gold graph that `text` holds."""
    nodes, edges = graph(text)
    places = {node: place for place, node in enumerate(nodes)}
    return Subtasks(list(nodes.values()), {(places[one], places[other]) for one, other in edges})


def drawn(plan: Plan) -> Subtasks:
    """The graph that a plan is: each step a subtask, each reference an edge."""
    places = {step.number: place for place, step in enumerate(plan.steps)}
    return Subtasks(
        [str(step.arguments.get("subtask", "")) for step in plan.steps],
        {(places[one], places[step.number]) for step in plan.steps for one in step.needs},
    )
