"""One situation: tools, what there is, what is wanted, what fails. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evals.planning.healing.oracle import objections, reachable
from evals.planning.healing.workshop import Fault, Workshop
from weft.planner.routing import Errand, Goal, ToolGraph


@dataclass(frozen=True, slots=True)
class Scenario:
    """`topology` is the group it is counted in. `faults` says which tools fail, and how."""

    name: str
    topology: str
    graph: ToolGraph
    have: Mapping[str, Any]
    errand: Errand
    faults: Mapping[str, Fault] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        """True when the goal itself can be reached with the tools that work."""
        return self.within_reach(self.errand.goal)

    def within_reach(self, goal: Goal) -> bool:
        """True when `goal` can be reached with the tools that work."""
        return reachable(self.graph, self.have, self.faults).issuperset(goal.wants)

    @property
    def lesser(self) -> tuple[Goal, ...]:
        """What would do instead and can be reached, best first."""
        there = reachable(self.graph, self.have, self.faults)
        missing = frozenset(self.errand.goal.wants) - there
        lesser = self.errand.instead_of(self.errand.goal, missing)
        return tuple(goal for goal in lesser if there.issuperset(goal.wants))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a system ended. `goal` and `values` are what it claims, None: it says that it failed.

    `control_calls` counts what was asked of a model; `unanswered` the failed calls that led to
    nothing that anybody could see; `latency_s` is virtual time.
    """

    goal: str | None
    values: Mapping[str, Any]
    control_calls: int
    unanswered: int
    latency_s: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A scenario, how it ended, and what that is worth.

    solved    the goal itself was reached, honestly
    correct   solved; or it cannot be, and a lesser goal that can was reached honestly; or nothing
              can be, and the system says so
    silent    failures nobody is told of: calls that failed without a trace, and wrong values that
              are handed over as results
    """

    scenario: Scenario
    ended: Ended
    tool_calls: int
    solved: bool
    correct: bool
    silent: int


def judge(scenario: Scenario, ended: Ended, workshop: Workshop) -> Judged:
    """What `ended` is worth, by the oracle."""
    goals = {goal.name: goal for goal in (scenario.errand.goal, *scenario.lesser)}
    goal = goals.get(ended.goal or "")
    honest = goal is not None and _honest(scenario, goal, ended.values, workshop)
    solved = honest and goal == scenario.errand.goal
    if scenario.feasible:
        correct = solved
    elif scenario.lesser:
        correct = honest
    else:
        correct = ended.goal is None
    lied = ended.goal is not None and not honest
    silent = ended.unanswered + lied
    return Judged(scenario, ended, len(workshop.calls), solved, correct, silent)


def _honest(scenario: Scenario, goal: Goal, values: Mapping[str, Any], workshop: Workshop) -> bool:
    return not any(
        problem
        for want in goal.wants
        for problem in objections(
            values.get(want), want, scenario.graph, scenario.have, workshop.made
        )
    )
