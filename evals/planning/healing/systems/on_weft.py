"""The self-healing router. Where it asks a model, a script answers: the best lesser goal."""

from __future__ import annotations

import json

from evals.planning.healing.scenario import Ended, Scenario
from evals.planning.healing.workshop import Workshop
from weft.core.errors import RouteError
from weft.core.events import Event, NodeFinished, NodeLogged, NodeRerouted
from weft.core.fakes import FakeClock, FakeModel
from weft.core.ports import ModelRequest
from weft.planner.routing import Router, heal


async def run(scenario: Scenario, workshop: Workshop, clock: FakeClock) -> Ended:
    """Reach the goal of `scenario` from what there is."""
    model = FakeModel(_best)
    events: list[Event] = []
    errand = scenario.errand
    router = Router(scenario.graph, workshop, model=model)
    try:
        arrival = await heal(
            router,
            errand.goal,
            scenario.have,
            lesser=errand.lesser,
            partial=errand.partial,
            clock=clock,
            listeners=[events.append],
        )
    except RouteError:
        return Ended(None, {}, len(model.requests), _unanswered(events), clock.now())
    values = arrival.values
    return Ended(arrival.goal, values, len(model.requests), _unanswered(events), clock.now())


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
