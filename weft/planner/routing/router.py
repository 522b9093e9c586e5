"""The router: tools and their graph, weights, monitors, deciders; and its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from weft.core.errors import BuildError, TypeMismatch, UnknownReference
from weft.core.ports import ModelClient, ToolRunner
from weft.core.schema import at, mismatch
from weft.core.suggestion import closest
from weft.core.values import JsonSchema, ToolSpec
from weft.planner.routing.cost import RouteWeights, ToolHistory
from weft.planner.routing.goal import Goal, RouteGoal
from weft.planner.routing.graph import RoutedTool, ToolGraph
from weft.planner.routing.monitor import RouteMonitor


def check_graph(graph: ToolGraph, specs: Mapping[str, ToolSpec]) -> None:
    """Check every tool of `graph` against `specs`, by name.

    Raises: `UnknownReference` for a tool or a parameter that does not exist, `TypeMismatch` for an
    argument that is missing or can never fit.
    """
    givers: dict[str, list[RoutedTool]] = {}
    for tool in graph.tools.values():
        for name in tool.names:
            givers.setdefault(name, []).append(tool)
    for tool in graph.tools.values():
        parameters = _spec(tool, specs).parameters
        _check_names(tool, parameters)
        for demand in tool.demands:
            for giver in [g for source in demand.sources for g in givers.get(source, ())]:
                result = _spec(giver, specs).result
                if demand.parameter is not None:
                    _check_type(tool, demand.parameter, parameters, result, giver.name)
        for parameter, value in tool.given.items():
            _check_type(tool, parameter, parameters, {"const": value}, repr(value)[:40])


def _spec(tool: RoutedTool, specs: Mapping[str, ToolSpec]) -> ToolSpec:
    found = specs.get(tool.tool)
    if found is None:
        near = closest(tool.tool, specs)
        hint = f"did you mean {near!r}?" if near else "give the tool runner a tool of that name"
        raise UnknownReference(f"there is no tool {tool.tool!r}", hint=hint)
    return found


def _check_names(tool: RoutedTool, parameters: JsonSchema) -> None:
    passed = {*tool.needs, *tool.given}
    both = sorted(set(tool.needs) & set(tool.given))
    if both:
        raise BuildError(
            f"{tool.name!r}: {both[0]!r} is both needed and given", hint="leave one of them out"
        )
    known = parameters.get("properties", {})
    if parameters.get("additionalProperties") is False:
        for name in sorted(passed - set(known)):
            hint = f"it takes {', '.join(known) or 'nothing'}"
            raise UnknownReference(f"the tool {tool.tool!r} has no {name!r}", hint=hint)
    for name in parameters.get("required", ()):
        if name not in passed:
            hint = "say under `needs` what fills it, or give it under `given`"
            raise TypeMismatch(f"the tool {tool.tool!r} needs {name!r}", hint=hint)


def _check_type(
    tool: RoutedTool, name: str, parameters: JsonSchema, source: JsonSchema | None, what: str
) -> None:
    try:
        why = mismatch(source, at(parameters, [name]))
    except LookupError:
        return
    if why is not None:
        hint = "leave it out of the sources, or put a tool between the two"
        message = f"{name!r} of {tool.tool!r} cannot take {what}: {why}"
        raise TypeMismatch(message, hint=hint)


Log = Callable[[str], None]


def _nowhere(_: Log) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class ToolRouter:
    """Reaches goals over `graph` with `tools`.

    weights      the user's prices; see `RouteWeights`
    monitors     observe every route, in parallel to its calls
    history      the statistics of past calls; every call adds to it
    model        chooses a lesser goal, once, when no route is left; None: no model
    person_s     how long a person has to answer when that fails; None: no person is asked
    patience_s   how long the choice of the next calls waits for running monitors
    decision_s   how long the model has to answer
    logs         receives what a tool logs during a call
    """

    graph: ToolGraph
    tools: ToolRunner
    weights: RouteWeights = field(default_factory=RouteWeights)
    monitors: Sequence[RouteMonitor] = ()
    history: ToolHistory = field(default_factory=ToolHistory)
    model: ModelClient | None = None
    person_s: float | None = None
    patience_s: float = 0.1
    decision_s: float = 120.0
    logs: Callable[[Log], AbstractContextManager[None]] = _nowhere

    def check(self, target: RouteGoal) -> None:
        """Check that `target` fits the graph, and the graph the tools.

        Raises: `UnknownReference` for a want that no tool gives or needs; what `check_graph`
        raises.
        """
        check_graph(self.graph, {spec.name: spec for spec in self.tools.specs()})
        for goal in (target.goal, *target.lesser):
            self._check_goal(goal)

    def _check_goal(self, goal: Goal) -> None:
        for want in goal.wants:
            if want not in self.graph.names:
                near = closest(want, self.graph.names)
                hint = f"did you mean {near!r}?" if near else "name a tool, or what a tool gives"
                raise UnknownReference(f"nothing gives {want!r}, which is wanted", hint=hint)
