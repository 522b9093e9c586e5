"""Self-healing routing: from what there is to what is wanted by the cheapest way that still works.

Tools are nodes of a graph; each says what it needs and what it gives. The cheapest way (latency,
money, reliability learnt from past calls, risk; weighed by the user) is taken call by call. When a
tool fails its edges become infinite and the way is found again from what has been had, without any
model. Monitors look on beside the work and can make a tool dearer or close it before it is called.
Only when no finite way is left a model is asked, once: which lesser goal, or escalate to a person.
After Self-Healing Router (arXiv 2603.01548). Every failure is answered by a logged reroute (event
`NodeRerouted`) or by an escalation; none is silent.

    from weft.planner.routing import CallCost, RoutedTool, ToolGraph, ToolRouter, heal

    graph = ToolGraph([
        RoutedTool("fetch", needs={"url": "address"}, gives=("page",)),
        RoutedTool("archive", needs={"url": "address"}, gives=("page",),
                   cost=CallCost(latency_s=4.0)),
        RoutedTool("summarise", needs={"text": "page"}),
    ])
    arrival = await heal(ToolRouter(graph, tools), "summarise", {"address": "https://..."})
    arrival.value, arrival.reroutes

`tools` is any `ToolRunner`. `healing(router, goal)` is the same as the work of a node in a graph of
one's own; `read_tool_graph(path)` reads the graphs of TaskBench.
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
