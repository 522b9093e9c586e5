"""The benchmarks in one shape: questions with tools, and what a plan for them scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from evals.planning.quality import bfcl, nestful, sequence, worfbench
from evals.planning.quality.ast_match import parallel_error
from evals.planning.quality.graph import graph_f1
from weft.core.values import ToolSpec
from weft.planner.plan import Plan

Scores = Mapping[str, float | None]
"""By metric; None where a metric does not apply to the item."""


@dataclass(frozen=True, slots=True)
class Question:
    """`score` rates a plan, and says in a word what is wrong with it; `nothing` is no plan's."""

    id: str
    question: str
    tools: tuple[ToolSpec, ...]
    score: Callable[[Plan], tuple[Scores, str]]
    nothing: Scores


def _bfcl(category: str) -> list[Question]:
    return [
        Question(item.id, item.question, item.tools, _ast(item), {"ast_accuracy": 0.0})
        for item in bfcl.items(category)
    ]


def _ast(item: bfcl.Item) -> Callable[[Plan], tuple[Scores, str]]:
    def score(plan: Plan) -> tuple[Scores, str]:
        if any(step.refs for step in plan.steps):
            return {"ast_accuracy": 0.0}, "reference"  # the published check knows literals only
        calls = [(step.tool, _plain(step.arguments)) for step in plan.steps]
        error = parallel_error(calls, item.gold, item.functions)
        return {"ast_accuracy": float(not error)}, error

    return score


def _nestful() -> list[Question]:
    return [
        Question(item.id, item.question, item.tools, _sequence(item.plan), _NO_SEQUENCE)
        for item in nestful.items()
    ]


_NO_SEQUENCE: Final = {"calls_f1": 0.0, "full_calls": 0.0, "edges_f1": 0.0}


def _sequence(gold: Plan) -> Callable[[Plan], tuple[Scores, str]]:
    def score(plan: Plan) -> tuple[Scores, str]:
        found = sequence.score(plan, gold)
        scores = {"calls_f1": found.calls, "full_calls": found.full, "edges_f1": found.edges}
        return scores, "" if found.full == 1.0 == found.calls else "other_calls"

    return score


def _worfbench() -> list[Question]:
    return [
        Question(item.id, item.question, worfbench.TOOLS, _graph(item), {"graph_f1_words": 0.0})
        for item in worfbench.items()
    ]


def _graph(item: worfbench.Item) -> Callable[[Plan], tuple[Scores, str]]:
    def score(plan: Plan) -> tuple[Scores, str]:
        f1 = graph_f1(worfbench.drawn(plan), item.gold)
        return {"graph_f1_words": f1}, "" if f1 == 1.0 else "other_graph"

    return score


BENCHMARKS: Final[Mapping[str, Callable[[], list[Question]]]] = {
    "bfcl_parallel": lambda: _bfcl("parallel"),
    "bfcl_parallel_multiple": lambda: _bfcl("parallel_multiple"),
    "nestful": _nestful,
    "worfbench": _worfbench,
}


def some(name: str, count: int) -> list[Question]:
    """`count` questions of a benchmark, the same each time. Raises: `Skipped`."""
    found = BENCHMARKS[name]()
    return found if len(found) <= count else Random(0).sample(found, count)


def _plain(value: object) -> Mapping[str, object]:
    """Arguments with lists as lists."""
    thawed = _thawed(value)
    assert isinstance(thawed, dict)
    return thawed


def _thawed(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _thawed(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_thawed(inner) for inner in value]
    return value
