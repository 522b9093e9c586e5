"""The evaluation of self-healing: its oracle, its scenarios, and what it finds."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from evals.engine.rows import Lookup
from evals.planning.effort import QUICK, Skipped
from evals.planning.healing import own, taskbench
from evals.planning.healing.charge import NOTHING, Asked, ChargedModel
from evals.planning.healing.evaluation import ALL, run
from evals.planning.healing.faults import SHARES, drawn_faults, scenarios
from evals.planning.healing.oracle import Made, objections, reachable
from evals.planning.healing.scenario import Case, Ended, Scenario, judge
from evals.planning.healing.systems import SYSTEMS
from evals.planning.healing.workshop import Workshop
from weft.core.ports import ModelRequest, complete
from weft.core.values import Message
from weft.planner.routing import Goal, RoutedTool, RouteGoal, ToolGraph
from weft.testing import FakeClock

GRAPH = ToolGraph(
    [
        RoutedTool("a", {"x": "s"}, gives=("f",)),
        RoutedTool("b", {"x": "s"}, gives=("f",)),
        RoutedTool("c", {"x": "f"}, after=("a",)),
    ]
)
HAVE = {"s": "start"}


def test_the_oracle_saturates() -> None:
    assert reachable(GRAPH, HAVE, ()) >= {"a", "b", "c", "f"}
    assert reachable(GRAPH, HAVE, {"a"}) == {"s", "b", "f"}


@pytest.mark.parametrize(
    ("value", "made", "honest"),
    [
        ("r3", {"r1": Made("a", {"x": "start"}), "r3": Made("c", {"x": "r1"})}, True),
        ("r3", {"r1": Made("a", {"x": None}), "r3": Made("c", {"x": "r1"})}, False),
        ("r3", {"r1": Made("b", {"x": "start"}), "r3": Made("c", {"x": "r1"})}, False),
        ("r3", {"r3": Made("c", {"x": "start"})}, False),
        ("r1", {"r1": Made("a", {"x": "start"})}, False),
        (None, {}, False),
    ],
)
def test_honest_values(value: object, made: dict[str, Made], honest: bool) -> None:
    assert (not list(objections(value, "c", GRAPH, HAVE, made))) == honest


def test_a_wrong_value_that_is_handed_over_is_a_silent_failure() -> None:
    scenario = Scenario("g", 0.0, Case(GRAPH, HAVE, RouteGoal(Goal("c"))))
    workshop = Workshop(GRAPH, {})
    lied = judge(scenario, Ended("c", {"c": None}, NOTHING, 0, 0.0), workshop)
    assert (lied.solved, lied.correct, lied.silent) == (False, False, 1)
    told = judge(scenario, Ended(None, {}, NOTHING, 0, 0.0), workshop)
    assert (told.solved, told.correct, told.silent) == (False, False, 0)


def test_a_goal_is_known_by_what_it_wants() -> None:
    """One that was lowered twice is named after both steps, and is the same."""
    both = Case(GRAPH, HAVE, RouteGoal(Goal("both", ("a", "b", "c"))))
    scenario = Scenario("g", 0.4, both, {"a": "raises", "c": "raises"})
    workshop = Workshop(GRAPH, scenario.faults)
    workshop.made["r1"] = Made("b", {"x": "start"})
    ended = Ended("both without a without c", {"b": "r1"}, NOTHING, 0, 0.0)
    assert judge(scenario, ended, workshop).correct


# -- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", own.CASES)
@pytest.mark.parametrize("share", SHARES)
def test_faults_are_drawn_over_all_tools_alike(name: str, share: float) -> None:
    """Chi-square over the tools, at one in a thousand; those of the goal are no exception."""
    graph = own.CASES[name].graph
    draws, counted = 2000, Counter[str]()
    for number in range(draws):
        counted.update(list(drawn_faults(graph, share, random.Random(number))))
    tools = len(graph.tools)
    each = max(1, round(share * tools))
    expected = draws * each / tools
    assert sum(counted.values()) == draws * each
    found = sum((counted[tool] - expected) ** 2 / expected for tool in graph.tools)
    bound = {8: 24.3, 12: 31.3, 22: 46.8}[tools]
    assert found < bound
    goals = [one for one in graph.tools if set(graph.tools[one].names) & set(_wants(name))]
    assert goals
    assert all(counted[tool] > 0.8 * expected for tool in goals)


def _wants(name: str) -> Sequence[str]:
    return own.CASES[name].errand.goal.wants


def test_no_scenario_is_left_out_and_all_shares_have_the_same_cases() -> None:
    def draw(rng: random.Random) -> Case:
        return Case(GRAPH, {"s": rng.random()}, RouteGoal(Goal("c")))

    found = list(scenarios("g", draw, 10))
    assert found == list(scenarios("g", draw, 10))
    assert Counter(one.share for one in found) == dict.fromkeys(SHARES, 10)
    assert len({one.case.have["s"] for one in found}) == 10
    assert {one.feasible for one in found} == {True, False}
    assert any(one.goal_fails for one in found)


def test_what_is_drawn_from_taskbench_is_always_the_same() -> None:
    try:
        draws = taskbench.draws()
    except Skipped as reason:
        pytest.skip(str(reason))
    for name, draw in draws.items():
        found = list(scenarios(name, draw, 3))
        again = list(scenarios(name, draw, 3))
        assert [(one.case.errand, one.faults) for one in found] == [
            (one.case.errand, one.faults) for one in again
        ]
        assert all(set(one.faults) <= set(one.case.graph.tools) for one in found)


# -- the same knowledge, the same charge -----------------------------------------------------------


def test_what_systems_are_told_has_no_faults() -> None:
    assert {field.name for field in fields(Case)} == {"graph", "have", "errand"}


@pytest.mark.parametrize(("weft", "react"), [("weft", "react"), ("weft_probed", "react_probed")])
def test_both_go_the_same_way_and_end_alike(weft: str, react: str) -> None:
    """With nothing broken they make the same calls; with whatever is, they reach the same goal."""
    for name, case in own.CASES.items():
        calls = []
        for system in (weft, react):
            workshop = Workshop(case.graph, {})
            clock = FakeClock()
            ended = clock.run(SYSTEMS[system](case, workshop, clock))
            calls.append((sorted(workshop.calls), ended.goal))
        assert calls[0] == calls[1]
        for scenario in scenarios(name, lambda _, case=case: case, 1):
            reached = [_reached(system, scenario) for system in (weft, react)]
            assert reached[0] == reached[1]


def _reached(system: str, scenario: Scenario) -> set[str] | None:
    clock = FakeClock()
    workshop = Workshop(scenario.case.graph, scenario.faults)
    ended = clock.run(SYSTEMS[system](scenario.case, workshop, clock))
    return None if ended.goal is None else set(ended.values)


def test_a_model_call_is_charged_to_a_failure_that_no_other_is_charged_to() -> None:
    failed: list[str] = []
    model = ChargedModel(lambda _: "go on", failed)
    asked = ModelRequest((Message("user", "What now?"),))

    def call(*failures: str) -> Asked:
        failed.extend(failures)
        FakeClock().run(complete(model.client, asked))
        return model.asked

    assert call() == Asked(1, 0)
    assert call("a") == Asked(2, 1)
    assert call() == Asked(3, 1)
    assert call("b", "c") == Asked(4, 2)
    assert call() == Asked(5, 3)
    assert call() == Asked(6, 3)


def test_an_agent_that_asks_after_each_failure_is_charged_one_for_each() -> None:
    for name, case in own.CASES.items():
        for scenario in scenarios(name, lambda _, case=case: case, 1):
            clock = FakeClock()
            workshop = Workshop(case.graph, scenario.faults)
            ended = clock.run(SYSTEMS["react"](case, workshop, clock))
            assert ended.asked.after_failure == len(workshop.failed)
            assert ended.asked.calls == len(workshop.calls) + 1


def test_no_failure_is_silent_and_everything_that_can_be_solved_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On our own graphs; TaskBench's are for the evaluation itself."""
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    rows = asyncio.run(run(QUICK))
    assert any(row.metric.startswith("skipped: ") for row in rows)
    figure = Lookup(rows)
    assert figure(ALL, "weft", "silent_failures") == 0
    assert figure(ALL, "weft", "solved_feasible") == 1
    assert figure(ALL, "weft", "correctness") == 1
    assert figure(ALL, "weft", "scenarios") == 3 * len(SHARES) * 2
    for metric in ("model_calls", "model_calls_after_failure"):
        own_calls, others = figure(ALL, "weft", metric), figure(ALL, "react", metric)
        assert own_calls is not None
        assert others
        assert own_calls < others
        assert figure(ALL, "weft", f"{metric}_ratio") == own_calls / others
    assert figure(ALL, "react", "correctness") == 1, "what it is compared with is done well"
    lenient = figure(ALL, "static_lenient", "silent_failures")
    assert lenient is not None
    assert lenient > 0
