"""The self-healing router. Where it asks a model, a script answers: the best lesser goal.

`run_probed` also has a monitor that probes every tool beside the work; a probe sees tools that are
down, not those that answer wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from evals.planning.healing.charge import ChargedModel
from evals.planning.healing.scenario import Case, Ended
from evals.planning.healing.workshop import Workshop
from weft.core.errors import RouteError
from weft.core.events import Event, NodeFinished, NodeLogged, NodeRerouted
from weft.core.ports import ModelRequest
from weft.planner.routing import RouteMonitor, ToolRouter, heal
from weft.planner.routing.monitors import ProbeMonitor
from weft.testing import FakeClock


async def run(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """Reach the goal of `case` from what there is."""
    return await _run(case, workshop, clock, ())


async def run_probed(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """The same, while a monitor probes the tools."""
    probes = {tool: partial(workshop.probe, tool) for tool in case.graph.tools}
    return await _run(case, workshop, clock, (ProbeMonitor(probes),))


async def _run(
    case: Case, workshop: Workshop, clock: FakeClock, monitors: Sequence[RouteMonitor]
) -> Ended:
    model = ChargedModel(_best, workshop.failed)
    events: list[Event] = []
    errand = case.errand
    router = ToolRouter(case.graph, workshop, model=model.client, monitors=monitors)
    try:
        arrival = await heal(
            router,
            errand.goal,
            case.have,
            lesser=errand.lesser,
            partial=errand.partial,
            clock=clock,
            listeners=[events.append],
        )
    except RouteError:
        return Ended(None, {}, model.asked, _unanswered(events), clock.now())
    values = arrival.values
    return Ended(arrival.goal, values, model.asked, _unanswered(events), clock.now())


def _best(request: ModelRequest) -> str:
    assert request.schema is not None
    return json.dumps({"choice": request.schema["properties"]["choice"]["enum"][0]})


def _unanswered(events: list[Event]) -> int:
    """Failed calls that no reroute and no escalation came after, by the events alone."""
    unanswered = 0
    for event in events:
        match event:
            case NodeFinished(node=node, outcome=outcome) if node.startswith("heal/"):
                unanswered += outcome.status == "failed"
            case NodeRerouted():
                unanswered -= 1
            case NodeLogged(text=text) if text.startswith("escalation: "):
                unanswered = 0
    return unanswered
