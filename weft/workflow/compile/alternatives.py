"""Node functions that call the cheapest of several tools; each failure is a logged reroute."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.tools import tool_logs
from weft.agents.tools.toolbox import ToolSettings
from weft.core.errors import ToolDenied
from weft.core.values import ToolSpec
from weft.engine.graph.node import Inputs, NodeContext, NodeFn
from weft.planner.routing import (
    CallCost,
    Goal,
    RoutedTool,
    RouteGoal,
    RouteWeights,
    ToolGraph,
    ToolRouter,
)
from weft.planner.routing.executor import RouteExecutor
from weft.workflow.compile.policy import retry_of
from weft.workflow.compile.services import services_of
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.fields import free_name
from weft.workflow.document.spec.nodes import ToolNode
from weft.workflow.document.unit import Unit

_RESULT: Final = Goal("the result")
_WEIGHTS: Final = RouteWeights(latency=0.0, money=1.0, call=0.0)
"""Only declared costs count, and how often a call succeeds."""


def tool(
    step: ToolNode,
    unit: Unit,
    settings: Callable[[str], ToolSettings],
    on: str | None = None,
) -> NodeFn:
    """Call the node's own tool, or the cheapest of its alternatives that has not failed yet.

    The cost of a call is divided by the tool's recent success rate. Fails with `RouteError` when
    all tools have failed. `settings`: those of a tool. `on`: see `Toolset.place`.
    """
    graph = ToolGraph(_routed(step, settings))
    rule = None if step.approve is None else value_template(step.approve)
    choices = {
        routed.name: (choice.tool, value_template(choice.arguments))
        for routed, choice in zip(graph.tools.values(), step.choices, strict=True)
    }

    async def node_fn(context: NodeContext, inputs: Inputs) -> Any:
        services = services_of(context)

        denied: list[ToolDenied] = []

        async def call(name: str) -> Any:
            text, arguments = choices[name]
            if denied:  # a no is not answered by another tool
                raise denied[0]
            given = arguments.render(inputs)
            try:
                if rule is None:
                    return await services.tools.call(unit, text, given, on)
                approve = bool(rule.render(inputs))
                return await services.tools.call_with(unit, text, given, approve, on)
            except ToolDenied as error:
                denied.append(error)
                raise

        router = ToolRouter(
            graph, _ChoiceRunner(call), weights=_WEIGHTS, history=services.history(), logs=tool_logs
        )
        return await RouteExecutor(
            router, RouteGoal(_RESULT), context, {}, lambda arrival: arrival.value
        ).run()

    return node_fn


def _routed(step: ToolNode, settings: Callable[[str], ToolSettings]) -> Iterator[RoutedTool]:
    taken: list[str] = []
    for place, choice in enumerate(step.choices, start=1):
        name = free_name(choice.tool.rpartition(":")[2], taken)
        taken.append(name)
        yield RoutedTool(
            name,
            gives=_RESULT.wants,
            cost=CallCost(0.0, place if choice.cost is None else choice.cost),
            timeout_s=step.timeout,
            retry=retry_of(step) or settings(choice.tool).retry,
            resource=settings(choice.tool).resource,
        )


@dataclass(frozen=True, slots=True)
class _ChoiceRunner:
    """Implements `ToolRunner` for the choices of one node, with their own arguments."""

    make: Callable[[str], Awaitable[Any]]

    def specs(self) -> tuple[ToolSpec, ...]:
        return ()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ARG002 - the port
        return await self.make(name)
