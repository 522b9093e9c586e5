"""A fixed workflow: the way that is best while everything works, on weft's engine.

`run` stops at the first failure and says so. `run_lenient` goes on with nothing in the place of
what failed, as pipelines do that continue on errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.planning.healing.scenario import Ended, Scenario
from evals.planning.healing.workshop import Workshop
from weft.core.fakes import FakeClock
from weft.core.ids import NodeId
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, Policy, Run
from weft.engine.node import MISSING, Work
from weft.planner.routing import Hop, ToolGraph, Weights, shortest_way


async def run(scenario: Scenario, workshop: Workshop, clock: FakeClock) -> Ended:
    """Carry out the way; a failure fails the run."""
    return await _run(scenario, workshop, clock, MISSING)


async def run_lenient(scenario: Scenario, workshop: Workshop, clock: FakeClock) -> Ended:
    """Carry out the way; what fails is None from then on."""
    return await _run(scenario, workshop, clock, None)


async def _run(scenario: Scenario, workshop: Workshop, clock: FakeClock, default: object) -> Ended:
    graph, goal = scenario.graph, scenario.errand.goal
    weights = Weights()
    way = shortest_way(
        graph, scenario.have, goal.wants, lambda tool: weights.price(graph.tools[tool].cost)
    )
    if way is None:
        return Ended(None, {}, 0, 0, 0.0)
    policy = Policy(default=default)
    places = _places(graph, way.hops)
    nodes = [_node(hop, scenario, workshop, places, policy) for hop in way.hops]
    result = await Run(Graph("static", nodes), clock=clock).wait()
    if result.status != "succeeded":
        return Ended(None, {}, 0, 0, clock.now())
    values = {want: _value(want, scenario.have, places, result.outcomes) for want in goal.wants}
    return Ended(goal.name, values, 0, 0, clock.now())


def _places(graph: ToolGraph, hops: tuple[Hop, ...]) -> dict[str, NodeId]:
    places: dict[str, NodeId] = {}
    for hop in hops:
        for name in graph.tools[hop.tool].names:
            places.setdefault(name, NodeId(graph.labels[hop.tool]))
    return places


def _value(
    want: str, have: Mapping[str, Any], places: Mapping[str, NodeId], outcomes: Mapping[NodeId, Any]
) -> Any:
    return have[want] if want in have else outcomes[places[want]].value


def _node(
    hop: Hop,
    scenario: Scenario,
    workshop: Workshop,
    places: Mapping[str, NodeId],
    policy: Policy,
) -> Node:
    demands = scenario.graph.tools[hop.tool].demands
    met = list(zip(demands, hop.sources, strict=True))
    given = {d.parameter: scenario.have[s] for d, s in met if d.parameter and s in scenario.have}
    edges = [Edge(places[s], d.parameter or "") for d, s in met if s not in scenario.have]
    return Node(
        NodeId(scenario.graph.labels[hop.tool]),
        _work(hop.tool, workshop),
        tuple(edges),
        given,
        policy=policy,
        kind="tool",
    )


def _work(tool: str, workshop: Workshop) -> Work:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return await workshop.call(tool, inputs)

    return work
