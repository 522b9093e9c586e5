"""How near a plan comes to a gold sequence of nested calls, without running either.

`calls` is NESTFUL's F1 of function names (arXiv 2409.03797), `full` its share of gold calls with
all their arguments; `edges` is ours: who feeds which parameter of whom, from which field.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evals.planning.quality.f1 import f1
from weft.planner.plan import Plan, Ref, Value, refs_in

Edge = tuple[str, tuple[str | int, ...], str, str]
"""The tool that gives, the field of its result, the tool that takes, its parameter."""


@dataclass(frozen=True, slots=True)
class Score:
    """Each from 0 to 1. `edges` is None where the gold plan has none."""

    calls: float
    full: float
    edges: float | None


def score(plan: Plan, gold: Plan) -> Score:
    """How `plan` compares with `gold`. The order of calls does not count."""
    names = f1([step.tool for step in plan.steps], [step.tool for step in gold.steps])
    found, wanted = Counter(_spelt(plan)), Counter(_spelt(gold))
    full = (found & wanted).total() / max(1, wanted.total())
    fed = list(edges(gold))
    return Score(names, full, f1(edges(plan), fed) if fed else None)


def edges(plan: Plan) -> Iterator[Edge]:
    """Every reference of a step to an earlier one, by names instead of numbers."""
    tools = {step.number: step.tool for step in plan.steps}
    for step in plan.steps:
        for name, value in step.arguments.items():
            for ref in refs_in(value):
                if ref.source in tools:
                    yield tools[int(ref.source)], ref.path, step.tool, name


def _spelt(plan: Plan) -> Iterator[str]:
    """Each call as text in which references name tools."""
    tools = {step.number: step.tool for step in plan.steps}
    for step in plan.steps:
        yield json.dumps([step.tool, _named(step.arguments, tools)], sort_keys=True)


def _named(value: Value, tools: Mapping[int, str]) -> Any:
    if isinstance(value, Ref):
        source = tools.get(value.source, "?") if isinstance(value.source, int) else value.source
        return {"from": source, "path": list(value.path)}
    if isinstance(value, Mapping):
        return {name: _named(inner, tools) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_named(inner, tools) for inner in value]
    return value
