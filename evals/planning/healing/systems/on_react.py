"""weft's own ReAct agent, with a script for a model that knows the graph as well as the router.

The script is the best model there could be: it has the router's prices and its search, makes no
call that is not needed, never repeats one that failed, and stops as soon as nothing can be done.
`run_probed`: it is also told which tools are down, as the router with a monitor is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from math import inf
from typing import Any

from evals.planning.healing.charge import ChargedModel
from evals.planning.healing.scenario import Case, Ended
from evals.planning.healing.workshop import Workshop
from weft.agents.agent import AgentOptions, run_agent
from weft.agents.loops.react import ReactAgent
from weft.core.ports import ModelRequest
from weft.planner.routing import Goal, RouteWeights, shortest_route
from weft.testing import FakeClock

_QUESTION = "Reach the goal."
_CALLS = 1000


async def run(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """Reach the goal of `case`, one call a turn."""
    return await _run(case, workshop, clock, ())


async def run_probed(case: Case, workshop: Workshop, clock: FakeClock) -> Ended:
    """The same, after every tool was probed."""
    async with asyncio.TaskGroup() as group:
        probes = {tool: group.create_task(workshop.probe(tool)) for tool in case.graph.tools}
    down = [tool for tool, probe in probes.items() if not probe.result()]
    return await _run(case, workshop, clock, down)


async def _run(case: Case, workshop: Workshop, clock: FakeClock, down: Collection[str]) -> Ended:
    model = ChargedModel(_Script(case, workshop, down).turn, workshop.failed)
    agent = ReactAgent(workshop, model.client, AgentOptions(rounds=_CALLS, calls=_CALLS))
    found = await run_agent(agent, _QUESTION, clock=clock)
    answer = json.loads(str(found.value()))
    return Ended(answer["goal"], answer["values"], model.asked, 0, clock.now())


class _Script:
    """What the model writes next, from what its calls came to. `down` is not called."""

    def __init__(self, case: Case, workshop: Workshop, down: Collection[str]) -> None:
        self._case = case
        self._workshop = workshop
        self._down = down
        self._weights = RouteWeights()
        self._goal: Goal | None = case.errand.goal

    def turn(self, _: ModelRequest) -> str:
        """A call; or the answer, which names the goal that was reached, if any."""
        values = self._values()
        while self._goal is not None and not all(want in values for want in self._goal.wants):
            call = self._call(self._goal, values)
            if call is not None:
                return json.dumps({"thought": "", "next": {"call": call}})
            self._goal = self._less(self._goal, values)
        reached = self._goal.name if self._goal is not None else None
        wants = self._goal.wants if self._goal is not None else ()
        answer = json.dumps({"goal": reached, "values": {want: values[want] for want in wants}})
        return json.dumps({"thought": "", "next": {"answer": answer}})

    def _values(self) -> dict[str, Any]:
        values = dict(self._case.have)
        for handle, made in self._workshop.made.items():
            for name in self._case.graph.tools[made.tool].names:
                values.setdefault(name, handle)
        return values

    def _price(self, tool: str) -> float:
        if tool in self._workshop.failed or tool in self._down:
            return inf
        return self._weights.price(self._case.graph.tools[tool].cost)

    def _call(self, goal: Goal, values: dict[str, Any]) -> dict[str, Any] | None:
        graph = self._case.graph
        way = shortest_route(graph, values, goal.wants, self._price)
        if way is None:
            return None
        hop = way.steps[0]
        met = zip(graph.tools[hop.tool].demands, hop.sources, strict=True)
        arguments = {d.parameter: values[s] for d, s in met if d.parameter is not None}
        return {"name": hop.tool, "arguments": arguments}

    def _less(self, goal: Goal, values: dict[str, Any]) -> Goal | None:
        graph = self._case.graph
        missing = [
            want
            for want in goal.wants
            if shortest_route(graph, values, [want], self._price) is None
        ]
        lesser = self._case.errand.instead_of(goal, frozenset(missing))
        return next(
            (g for g in lesser if shortest_route(graph, values, g.wants, self._price)), None
        )
