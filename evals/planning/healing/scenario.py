"""One situation: tools, what there is, what is wanted, what fails. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evals.planning.healing.charge import Asked
from evals.planning.healing.oracle import objections, reachable
from evals.planning.healing.workshop import Fault, Workshop
from weft.planner.routing import Goal, RouteGoal, ToolGraph


@dataclass(frozen=True, slots=True)
class Case:
    """What every system is told: the tools with their prices, what there is, what is wanted."""

    graph: ToolGraph
    have: Mapping[str, Any]
    errand: RouteGoal


@dataclass(frozen=True, slots=True)
class Scenario:
    """`case` on a day when `faults` are; no system is told them.

    It is counted with those of the same `graph_name` and the same `share` of tools that fail.
    """

    graph_name: str
    share: float
    case: Case
    faults: Mapping[str, Fault] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        """True when the goal itself can be reached with the tools that work."""
        return self.within_reach(self.case.errand.goal)

    @property
    def goal_fails(self) -> bool:
        """True when a tool fails that is itself what is wanted, or gives it."""
        wants = frozenset(self.case.errand.goal.wants)
        tools = self.case.graph.tools
        return any(wants.intersection(tools[name].names) for name in self.faults)

    def within_reach(self, goal: Goal) -> bool:
        """True when `goal` can be reached with the tools that work."""
        return reachable(self.case.graph, self.case.have, self.faults).issuperset(goal.wants)

    @property
    def lesser(self) -> tuple[Goal, ...]:
        """What would do instead and can be reached, best first."""
        there = reachable(self.case.graph, self.case.have, self.faults)
        errand = self.case.errand
        lesser = errand.instead_of(errand.goal, frozenset(errand.goal.wants) - there)
        return tuple(goal for goal in lesser if there.issuperset(goal.wants))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a system ended. `goal` and `values` are what it claims, None: it says that it failed.

    `asked` is what was asked of a model; `unanswered` the failed calls that led to nothing that
    anybody could see; `latency_s` is virtual time, in which models take none.
    """

    goal: str | None
    values: Mapping[str, Any]
    asked: Asked
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
    failed_calls: int
    solved: bool
    correct: bool
    silent: int


def judge(scenario: Scenario, ended: Ended, workshop: Workshop) -> Judged:
    """What `ended` is worth, by the oracle.

    A goal is known by what it wants: one that was lowered twice has another name.
    """
    wanted = scenario.case.errand.goal
    goals = {frozenset(goal.wants): goal for goal in (*scenario.lesser, wanted)}
    goal = None if ended.goal is None else goals.get(frozenset(ended.values))
    honest = goal is not None and _honest(scenario, goal, ended.values, workshop)
    solved = honest and goal == wanted
    if scenario.feasible:
        correct = solved
    elif scenario.lesser:
        correct = honest
    else:
        correct = ended.goal is None
    lied = ended.goal is not None and not honest
    silent = ended.unanswered + lied
    calls, failed = len(workshop.calls), len(workshop.failed)
    return Judged(scenario, ended, calls, failed, solved, correct, silent)


def _honest(scenario: Scenario, goal: Goal, values: Mapping[str, Any], workshop: Workshop) -> bool:
    return not any(
        problem
        for want in goal.wants
        for problem in objections(
            values.get(want), want, scenario.case.graph, scenario.case.have, workshop.made
        )
    )
