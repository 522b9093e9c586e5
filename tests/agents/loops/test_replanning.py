"""Thirty runs in which calls fail: only the failed cone is executed again, counted call by call."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from tests.agents.loops.agent_run import ContentWhenDone, ScriptedModel, play_agent
from tests.planner.runnable import ComputingTools, Evaluation, evaluate, random_plan
from weft.agents.agent import AgentOptions, merge_plans
from weft.agents.loops.compiler import CompilerAgent
from weft.core.ports import ModelRequest
from weft.planner.plan import Plan, PlanStep, renumber_step
from weft.planner.text.writer import write

RUNS = 30


def interesting(seed: int) -> tuple[Plan, dict[str, int]] | None:
    """A plan whose calls all differ, and calls that fail once or twice and block others."""
    chance = random.Random(seed)
    plan = random_plan(chance, chance.randint(4, 10))
    calls = evaluate(plan).calls
    if len(calls) < 3 or len(set(calls)) < len(calls):
        return None
    broken = dict.fromkeys(chance.sample(calls, chance.choice((1, 1, 2))), chance.choice((1, 1, 2)))
    return (plan, broken) if evaluate(plan, list(broken)).blocked else None


CASES = [case for case in map(interesting, range(2000)) if case is not None][:RUNS]


class Replanner:
    """Writes `plan`, and in later rounds, with new numbers, what is not done; or all, if `whole`.

    That is what a good model does when it is told what failed, and what a bad one does.
    """

    def __init__(self, plan: Plan, broken: Mapping[str, int], *, whole: bool) -> None:
        self._plan = plan
        self._broken = dict(broken)
        self._whole = whole
        self._last = max(step.number for step in plan.steps)
        self._names = {step.number: step.number for step in plan.steps}

    def __call__(self, _: ModelRequest) -> str:
        before = [key for key, times in self._broken.items() if times > 0]
        text = write(self._next)
        self._failed = evaluate(self._plan, before)
        for key in set(self._failed.calls):
            self._broken[key] = self._broken.get(key, 0) - 1
        return text

    _failed: Evaluation | None = None

    @property
    def _next(self) -> Plan:
        found = self._failed
        if found is None:
            return self._plan
        again = set(self._names) if self._whole else found.failed | found.blocked
        done = set(found.values) - again
        steps: list[PlanStep] = []
        for step in self._plan.steps:
            if step.number in again and set(step.needs) <= done | again - found.left_out:
                self._last += 1
                self._names[step.number] = self._last
                steps.append(step)
            elif step.number in again:
                again.discard(step.number)  # it needs what a condition left out
        moved = tuple(renumber_step(step, self._names) for step in steps)
        return Plan(moved, ())


def test_the_suite_is_as_large_as_it_says() -> None:
    assert len(CASES) == RUNS
    assert len({write(plan) for plan, _ in CASES}) == RUNS


@pytest.mark.parametrize("whole", [False, True], ids=["the rest", "everything again"])
@pytest.mark.parametrize("number", range(RUNS))
def test_only_the_failed_cone_is_executed_again(number: int, whole: bool) -> None:
    plan, broken = CASES[number]
    tools = ComputingTools(number, broken)
    agent = CompilerAgent(
        tools,
        ScriptedModel(reply=Replanner(plan, broken, whole=whole)),
        AgentOptions(rounds=9, calls=500),
        joiner=ContentWhenDone(),
    )
    played = play_agent(agent)

    expected = evaluate(plan)
    wanted = Counter(expected.calls) + Counter(broken)  # each failure is made up for once
    assert Counter(tools.calls) == wanted
    assert played.answer.rounds > 1
    assert played.result.result.status == "succeeded"

    kept = evaluate(merge_plans(played.answer))  # what would be frozen
    assert Counter(map(repr, kept.values.values())) == Counter(map(repr, expected.values.values()))
