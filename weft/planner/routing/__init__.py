"""Self-healing routing: finds the cheapest working route over tools to a goal.

Tools are nodes of a graph; each declares its inputs and results. The cheapest route (latency,
money, reliability learnt from past calls, risk; weighted by the user) runs call by call. When a
tool fails its edges become infinite, and a new route from the values so far is found without any
model. Monitors run in parallel and can raise a tool's price or close it before it is called. Only
when no finite route is left a model is called, once: it chooses a lesser goal, or escalates to a
person. After Self-Healing Router (arXiv 2603.01548). Every failure leads to a logged reroute (event
`NodeRerouted`) or to an escalation; none is silent.

    from weft.planner.routing import CallCost, RoutedTool, ToolGraph, ToolRouter, heal

    graph = ToolGraph([
        RoutedTool("fetch", needs={"url": "address"}, gives=("page",)),
        RoutedTool("archive", needs={"url": "address"}, gives=("page",),
                   cost=CallCost(latency_s=4.0)),
        RoutedTool("summarise", needs={"text": "page"}),
    ])
    result = await heal(ToolRouter(graph, tools), "summarise", {"address": "https://..."})
    result.value, result.reroutes

`tools` is any `ToolRunner`. `healing(router, goal)` is the same as a node function;
`read_tool_graph(path)` reads the graphs of TaskBench.
"""

from weft.planner.routing.cost import DOWN, CallCost, RouteWeights, ToolHistory
from weft.planner.routing.goal import Goal, RouteGoal
from weft.planner.routing.graph import RoutedTool, ToolGraph, read_tool_graph
from weft.planner.routing.heal import heal, healing
from weft.planner.routing.monitor import MonitorSignal, RoutedCall, RouteMonitor, RouterState
from weft.planner.routing.result import LoweredGoal, Reroute, RouteResult
from weft.planner.routing.route import Route, RouteStep, shortest_route
from weft.planner.routing.router import ToolRouter

__all__ = [
    "DOWN",
    "CallCost",
    "Goal",
    "LoweredGoal",
    "MonitorSignal",
    "Reroute",
    "Route",
    "RouteGoal",
    "RouteMonitor",
    "RouteResult",
    "RouteStep",
    "RouteWeights",
    "RoutedCall",
    "RoutedTool",
    "RouterState",
    "ToolGraph",
    "ToolHistory",
    "ToolRouter",
    "heal",
    "healing",
    "read_tool_graph",
    "shortest_route",
]
