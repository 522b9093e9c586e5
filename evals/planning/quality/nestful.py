"""NESTFUL's items with the tools they need and some that they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from evals.planning.data import load
from evals.planning.orchestration.cases import nestful as gold
from weft.core.errors import PlanError
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.plan import Plan
from weft.planner.text.reader import read
from weft.planner.text.writer import write

DISTRACTORS: Final = 4
_SETS: Final = ("glaive", "sgd")
_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "array", "object"))


@dataclass(frozen=True, slots=True)
class Item:
    """A question, the tools that may be called, and the gold plan."""

    id: str
    question: str
    tools: tuple[ToolSpec, ...]
    plan: Plan


def items() -> list[Item]:
    """The items with four other tools each, if their gold plan fits the tools. Raises: `Skipped`.

    127 of 215 do. The others call tools that are not described, or contradict the descriptions:
    a text for a number, parameters or fields that there are not, a list where a text is due.
    """
    tools = {name: _tools(name) for name in _SETS}
    found = []
    for task in gold.tasks():
        known = tools[task.id.split("_")[0]]
        needed = dict.fromkeys(step.tool for step in task.plan.steps)
        if needed.keys() <= known.keys():
            draw = Random(task.id)
            others = draw.sample([name for name in known if name not in needed], DISTRACTORS)
            names = [*needed, *others]
            draw.shuffle(names)
            chosen = tuple(known[name] for name in names)
            if _fits(task.plan, chosen):
                found.append(Item(task.id, task.question, chosen, task.plan))
    return found


def total() -> int:
    """How many items there are, with those that `items` leaves out. Raises: `Skipped`."""
    return len(gold.tasks())


def _fits(plan: Plan, tools: Sequence[ToolSpec]) -> bool:
    try:
        read(write(plan), tools)
    except PlanError:
        return False
    return True


def _tools(name: str) -> Mapping[str, ToolSpec]:
    described = load(f"planner/nestful/non-executable-{name}-spec.json")
    tools = [_tool(each) for each in described]
    return {tool.name: tool for tool in tools}


def _tool(described: Mapping[str, Any]) -> ToolSpec:
    """The sets name the parameters in three ways; those of the second have no types."""
    keys = ("query_parameters", "parameters", "arguments")
    parameters: Mapping[str, Any]
    parameters = next((described[key] for key in keys if described.get(key)), {})
    fields = described.get("output_parameters") or {}
    return ToolSpec(
        described["name"].replace(".", "_"),
        described["description"],
        {
            "type": "object",
            "properties": {name: _schema(each) for name, each in parameters.items()},
            "required": [name for name, each in parameters.items() if each.get("required")],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {name: _schema(each) for name, each in fields.items()},
            "required": list(fields),
        },
    )


def _schema(described: Mapping[str, Any]) -> JsonSchema:
    """A parameter or field as JSON Schema; what has no usual type is text."""
    kind = described.get("type")
    found: dict[str, Any] = {"type": kind if kind in _TYPES else "string"}
    if described.get("description"):
        found["description"] = described["description"]
    values = described.get("enum") or described.get("allowed_values")
    if values:
        found["enum"] = list(values)
    if isinstance(described.get("items"), Mapping):
        found["items"] = _schema(described["items"])
    if isinstance(described.get("properties"), Mapping):
        found["properties"] = {
            name: _schema(each) for name, each in described["properties"].items()
        }
    return found
