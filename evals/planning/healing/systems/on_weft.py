"""The self-healing router. Where it asks a model, a script answers: the best lesser goal.

`run_probed` also has a monitor that probes every tool beside the work; a probe sees tools that are
down, not those that answer wrongly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from evals.planning.healing.scenario import Ended, Scenario
from evals.planning.healing.workshop import Workshop
from weft.core.errors import RouteError
from weft.core.events import Event, NodeFinished, NodeLogged, NodeRerouted
from weft.core.fakes import FakeClock, FakeModel
from weft.core.ports import ModelRequest
from weft.planner.routing import Monitor, Router, heal
from weft.planner.routing.monitors import Probes
from weft.planner.routing.monitors.probes import Probe

_DOWN = ("raises", "hangs")
_PROBE_S = 0.05


async def run(scenario: Scenario, workshop: Workshop, clock: FakeClock) -> Ended:
    """Reach the goal of `scenario` from what there is."""
    return await _run(scenario, workshop, clock, ())


async def run_probed(scenario: Scenario, workshop: Workshop, clock: FakeClock) -> Ended:
    """The same, while a monitor probes the tools."""
    probes = {tool: _probe(scenario, tool) for tool in scenario.graph.tools}
    return await _run(scenario, workshop, clock, (Probes(probes),))


def _probe(scenario: Scenario, tool: str) -> Probe:
    async def probe() -> bool:
        await asyncio.sleep(_PROBE_S)
        return scenario.faults.get(tool) not in _DOWN

    return probe


async def _run(
    scenario: Scenario, workshop: Workshop, clock: FakeClock, monitors: Sequence[Monitor]
) -> Ended:
    model = FakeModel(_best)
    events: list[Event] = []
    errand = scenario.errand
    router = Router(scenario.graph, workshop, model=model, monitors=monitors)
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
