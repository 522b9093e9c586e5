"""A fixed workflow: the way that is best while everything works, on weft's engine.

`run` stops at the first failure and says so. `run_lenient` goes on with nothing in the place of
what failed, as pipelines do that continue on errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.planning.healing.charge import NOTHING
from evals.planning.healing.scenario import Case, Ended
from evals.planning.healing.workshop import Workshop
from weft.core.ids import NodeId
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, Policy, Run
from weft.engine.graph.node import MISSING, NodeFn
from weft.planner.routing import RouteStep, RouteWeights, ToolGraph, shortest_route
from weft.testing import FakeClock


async def run(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """Carry out the way; a failure fails the run."""
    return await _run(case, workshop, clock, MISSING)


async def run_lenient(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """Carry out the way; what fails is None from then on."""
    return await _run(case, workshop, clock, None)


async def _run(case: Case, workshop: Workshop, clock: FakeClock, default: object) -> Ended:
    graph, goal = case.graph, case.errand.goal
    weights = RouteWeights()
    way = shortest_route(
        graph, case.have, goal.wants, lambda tool: weights.price(graph.tools[tool].cost)
    )
    if way is None:
        return Ended(None, {}, NOTHING, 0, 0.0)
    policy = Policy(default=default)
    places = _places(graph, way.steps)
    nodes = [_node(hop, case, workshop, places, policy) for hop in way.steps]
    result = await Run(Graph("static", nodes), clock=clock).wait()
    if result.status != "succeeded":
        return Ended(None, {}, NOTHING, 0, clock.now())
    values = {want: _value(want, case.have, places, result.outcomes) for want in goal.wants}
    return Ended(goal.name, values, NOTHING, 0, clock.now())


def _places(graph: ToolGraph, hops: tuple[RouteStep, ...]) -> dict[str, NodeId]:
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
    hop: RouteStep,
    case: Case,
    workshop: Workshop,
    places: Mapping[str, NodeId],
    policy: Policy,
) -> Node:
    demands = case.graph.tools[hop.tool].demands
    met = list(zip(demands, hop.sources, strict=True))
    given = {d.parameter: case.have[s] for d, s in met if d.parameter and s in case.have}
    edges = [Edge(places[s], d.parameter or "") for d, s in met if s not in case.have]
    return Node(
        NodeId(case.graph.labels[hop.tool]),
        _work(hop.tool, workshop),
        tuple(edges),
        given,
        policy=policy,
        kind="tool",
    )


def _work(tool: str, workshop: Workshop) -> NodeFn:
    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return await workshop.call(tool, inputs)

    return work
