"""Random graphs with random faults: what can be had is had, and no failure is silent."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evals.planning.healing.oracle import objections, reachable
from tests.planner.routing.errand import errand
from tests.planner.routing.world import START, World, faults, graphs
from tests.profile import examples
from weft.core.fakes import FakeModel
from weft.core.ports import ModelRequest
from weft.engine import RunOptions
from weft.planner.routing import Goal, Router, ToolGraph


@given(st.data(), graphs())
@examples(300)
def test_what_can_be_had_is_had_without_a_model(data: st.DataObject, graph: ToolGraph) -> None:
    broken = data.draw(faults(graph))
    wants = data.draw(st.lists(st.sampled_from(sorted(graph.names)), min_size=1, max_size=3))
    slots = data.draw(st.sampled_from([None, 1, 2]))
    world = World(graph, broken)
    goal = Goal("the goal", tuple(wants))
    ran = errand(Router(graph, world), goal, START, partial=False, options=RunOptions(slots))
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
    ran = errand(Router(graph, World(graph, broken), model=model), goal, START, lesser)
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
