"""The evaluation of self-healing: its oracle, its scenarios, and what it finds."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from evals.engine.rows import Lookup
from evals.planning.effort import QUICK, Skipped
from evals.planning.healing import own, taskbench
from evals.planning.healing.evaluation import ALL, run
from evals.planning.healing.oracle import Made, objections, reachable
from evals.planning.healing.scenario import Ended, Scenario, judge
from evals.planning.healing.workshop import Workshop
from weft.planner.routing import Errand, Goal, RoutedTool, ToolGraph

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
    scenario = Scenario("x", "t", GRAPH, HAVE, Errand(Goal("c")))
    workshop = Workshop(GRAPH, {})
    lied = judge(scenario, Ended("c", {"c": None}, 0, 0, 0.0), workshop)
    assert (lied.solved, lied.correct, lied.silent) == (False, False, 1)
    told = judge(scenario, Ended(None, {}, 0, 0, 0.0), workshop)
    assert (told.solved, told.correct, told.silent) == (False, False, 0)


def test_there_are_enough_scenarios_of_every_kind() -> None:
    found = list(own.scenarios())
    assert len(found) >= 19
    assert set(Counter(one.topology for one in found)) == {"linear", "dag", "fanout"}
    assert any(len(one.faults) > 1 for one in found)
    assert any(not one.feasible for one in found)
    assert len({one.name for one in found}) == len(found)
    assert all(set(one.faults) <= set(one.graph.tools) for one in found)


def test_what_is_drawn_from_taskbench_is_always_the_same() -> None:
    try:
        found = list(taskbench.scenarios(3))
    except Skipped as reason:
        pytest.skip(str(reason))
    assert len(found) == 18
    again = list(taskbench.scenarios(3))
    assert [(one.errand, one.faults) for one in found] == [(o.errand, o.faults) for o in again]
    assert all(len(one.faults) == 1 for one in found if one.topology.endswith("single"))
    assert all(len(one.faults) > 1 for one in found if one.topology.endswith("compound"))


def test_no_failure_is_silent_and_everything_that_can_be_solved_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Done when 4, on our own scenarios; TaskBench's are for the evaluation itself."""
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    rows = asyncio.run(run(QUICK))
    assert any(row.metric.startswith("skipped: ") for row in rows)
    figure = Lookup(rows)
    assert figure(ALL, "weft", "silent_failures") == 0
    assert figure(ALL, "weft", "solved_feasible") == 1
    assert figure(ALL, "weft", "correctness") == 1
    ratio = figure(ALL, "weft", "control_plane_calls_ratio")
    assert ratio is not None
    assert ratio <= 0.1
    assert figure(ALL, "react", "correctness") == 1, "what it is compared with is done well"
    lenient = figure(ALL, "static_lenient", "silent_failures")
    assert lenient is not None
    assert lenient > 0
