"""Random graphs with random faults: what can be had is had, and no failure is silent."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from evals.planning.healing.oracle import objections, reachable
from tests.planner.routing.random_tool_graphs import START, World, faults, graphs
from tests.planner.routing.route_run import errand
from tests.profile import examples
from weft.core.ports import ModelRequest
from weft.engine import RunOptions
from weft.planner.routing import DOWN, Goal, MonitorSignal, RouterState, ToolGraph, ToolRouter
from weft.testing import FakeModel


@given(st.data(), graphs())
@examples(300)
def test_what_can_be_had_is_had_without_a_model(data: st.DataObject, graph: ToolGraph) -> None:
    broken = data.draw(faults(graph))
    wants = data.draw(st.lists(st.sampled_from(sorted(graph.names)), min_size=1, max_size=3))
    slots = data.draw(st.sampled_from([None, 1, 2]))
    world = World(graph, broken)
    goal = Goal("the goal", tuple(wants))
    ran = errand(ToolRouter(graph, world), goal, START, partial=False, options=RunOptions(slots))
    there = reachable(graph, frozenset(START), frozenset(broken))
    assert (ran.arrival is not None) == there.issuperset(wants)
    assert len(set(world.calls)) == len(world.calls), "no call is made twice"
    assert {event.node.partition("/")[2] for event in ran.failed} <= set(broken) & set(world.calls)
    if ran.arrival is not None:
        assert ran.arrival.model_calls == 0
        assert ran.arrival.goal == "the goal"
        for want in goal.wants:
            value = ran.arrival.values[want]
            assert not list(objections(value, want, graph, START, world.made))


class Moody:
    """A monitor that says something else at every look, takes its time, and may break."""

    def __init__(
        self, moods: list[list[MonitorSignal]], takes_s: float, every_s: float | None
    ) -> None:
        self.name = "moody"
        self.every_s = every_s
        self.moods = moods
        self.takes_s = takes_s

    async def look(self, scene: RouterState) -> list[MonitorSignal]:
        if not self.moods:
            raise RuntimeError("out of moods")
        mood = self.moods.pop(0)
        await asyncio.sleep(self.takes_s)
        return mood


def moods(graph: ToolGraph) -> st.SearchStrategy[Moody]:
    signal = st.builds(
        MonitorSignal,
        st.sampled_from([0.1, 0.5, 0.9]),
        st.just("a mood"),
        st.sampled_from(list(graph.tools)),
        health=st.sampled_from([None, 1.0, 4.0, DOWN]),
        risk=st.sampled_from([None, 0.0, 3.0]),
    )
    several = st.lists(st.lists(signal, max_size=3), max_size=6)
    takes_s = st.sampled_from([0.0, 0.05, 7.0, 1e6])
    return st.builds(Moody, several, takes_s, st.sampled_from([None, 0.5]))


@given(st.data(), graphs())
@examples(200)
def test_no_monitor_makes_a_failure_silent_or_an_errand_hang(
    data: st.DataObject, graph: ToolGraph
) -> None:
    broken = data.draw(faults(graph))
    want = data.draw(st.sampled_from(sorted(graph.names)))
    monitors = data.draw(st.lists(moods(graph), max_size=3))
    world = World(graph, broken)
    ran = errand(ToolRouter(graph, world, monitors=monitors), want, START)
    assert len(set(world.calls)) == len(world.calls)
    if ran.arrival is not None:
        assert not list(objections(ran.arrival.value, want, graph, START, world.made))
    elif want in reachable(graph, frozenset(START), frozenset(broken)):
        assert any("moody: " in line for line in ran.logged), "only a signal closes a tool"


@given(st.data(), graphs(), st.integers(0, 12))
@examples(100)
def test_an_errand_can_be_cut_off_at_any_time(
    data: st.DataObject, graph: ToolGraph, after_s: int
) -> None:
    broken = data.draw(faults(graph))
    goal = Goal("all", tuple(graph.tools))
    options = RunOptions(deadline_s=after_s + 0.5)
    world = World(graph, broken)
    ran = errand(ToolRouter(graph, world), goal, START, options=options, cut=True)
    assert ran.events[-1].at_s <= after_s + 0.5


@given(st.data(), graphs())
@examples(200)
def test_the_model_is_asked_once_for_each_end_and_never_before(
    data: st.DataObject, graph: ToolGraph
) -> None:
    broken = data.draw(faults(graph))
    names = st.sampled_from(sorted(graph.names))
    goal = data.draw(names)
    lesser = [Goal(f"lesser {name}", (name,)) for name in data.draw(st.lists(names, unique=True))]
    escalates = data.draw(st.booleans())
    model = FakeModel(lambda request: _choose(request, escalates))
    ran = errand(ToolRouter(graph, World(graph, broken), model=model), goal, START, lesser)
    there = reachable(graph, frozenset(START), frozenset(broken))
    possible = [one for one in lesser if there.issuperset(one.wants)]
    if goal in there:
        assert ran.arrival is not None
        assert not model.requests
    elif ran.arrival is not None:
        assert not escalates
        assert ran.arrival.goal in [one.name for one in possible]
        assert len(model.requests) == ran.arrival.model_calls == len(ran.arrival.lowered)
    else:
        assert escalates or not possible
        assert len(model.requests) <= 1 + len(lesser)


def _choose(request: ModelRequest, escalates: bool) -> str:
    assert request.schema is not None
    names = request.schema["properties"]["choice"]["enum"]
    assert names[-1] == "escalate"
    assert len(names) > 1, "a choice of one is none"
    return json.dumps({"choice": names[-1] if escalates else names[0], "reason": "as told"})
