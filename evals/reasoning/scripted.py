"""The runtime against symbolic searches: it must find what they find, problem by problem.

The model is the search itself behind the model port: a prompt that the runtime puts together
otherwise than the search does has no continuation. Knows no weights.
"""

from __future__ import annotations

from statistics import mean
from typing import Final

from evals.engine.rows import Row
from evals.planning.data import folder
from evals.planning.effort import Effort
from evals.reasoning.countdown.measuring import Solved, rows_of, solve_all
from evals.reasoning.countdown.problem import Problem, read_problems, verified
from evals.reasoning.countdown.scripted_model import SymbolicModel
from evals.reasoning.countdown.search import Beams
from evals.reasoning.countdown.sequences import run_apr, run_sos_plus
from evals.reasoning.countdown.trace import Node
from evals.reasoning.report import Target

CASE: Final = "countdown4_scripted"
PROBLEMS: Final = "countdown4_val_1000.jsonl"
SYSTEMS: Final = {
    "apr_10_15": SymbolicModel("apr", Beams(10, 15)),
    "sos_10": SymbolicModel("sos", Beams(10, 10)),
}
TARGETS: Final = tuple(Target(CASE, system, "equal", 100.0) for system in SYSTEMS)


async def run(effort: Effort) -> list[Row]:
    """The first 300 problems, 30 in a hurry. Raises: `Skipped` without the data."""
    problems = read_problems(folder("reasoning") / PROBLEMS)[: effort.of(30, 300)]
    rows: list[Row] = []
    for system, model in SYSTEMS.items():
        solved = await solve_all(model, problems, {})
        rows += rows_of(CASE, system, solved) + against_search(system, model, solved)
    return rows


def against_search(system: str, model: SymbolicModel, solved: list[Solved]) -> list[Row]:
    """The accuracy of the search by itself, and in how many problems both took the same steps."""
    alone = [searched(model, one.problem) for one in solved]
    right = [verified(one.problem, steps) for one, steps in zip(solved, alone, strict=True)]
    equal = [one.steps == steps for one, steps in zip(solved, alone, strict=True)]
    return [
        Row(CASE, system, "accuracy_alone", 100 * mean(right), "%"),
        Row(CASE, system, "equal", 100 * mean(equal), "%"),
    ]


def searched(model: SymbolicModel, problem: Problem) -> tuple[str, ...]:
    """The steps that the search of `model` finds without any runtime; empty: none."""
    if model.kind == "apr":
        return run_apr(problem, model.beams, model.draws).steps or ()
    root = Node.root(problem)
    return run_sos_plus(problem, model.beams, model.draws(root)).steps or ()
