"""Self-healing routing: from what there is to what is wanted by the cheapest way that still works.

Tools are nodes of a graph; each says what it needs and what it gives. The cheapest way (latency,
money, reliability learnt from past calls, risk; weighed by the user) is taken call by call. When a
tool fails its edges become infinite and the way is found again from what has been had, without any
model. Monitors look on beside the work and can make a tool dearer or close it before it is called.
Only when no finite way is left a model is asked, once: which lesser goal, or escalate to a person.
After Self-Healing Router (arXiv 2603.01548). Every failure is answered by a logged reroute (event
`NodeRerouted`) or by an escalation; none is silent.

    from weft.planner.routing import Cost, RoutedTool, Router, ToolGraph, heal

    graph = ToolGraph([
        RoutedTool("fetch", needs={"url": "address"}, gives=("page",)),
        RoutedTool("archive", needs={"url": "address"}, gives=("page",), cost=Cost(latency_s=4.0)),
        RoutedTool("summarise", needs={"text": "page"}),
    ])
    arrival = await heal(Router(graph, tools), "summarise", {"address": "https://..."})
    arrival.value, arrival.reroutes

`tools` is any `ToolRunner`. `healing(router, goal)` is the same as the work of a node in a graph of
one's own; `read_tool_graph(path)` reads the graphs of TaskBench.
"""

from weft.planner.routing.arrival import Arrival, Lowering, Reroute
from weft.planner.routing.cost import DOWN, Cost, Weights
from weft.planner.routing.files import read_tool_graph
from weft.planner.routing.goal import Errand, Goal
from weft.planner.routing.graph import RoutedTool, ToolGraph
from weft.planner.routing.heal import heal, healing
from weft.planner.routing.history import History
from weft.planner.routing.monitor import Call, Monitor, Scene, Signal
from weft.planner.routing.router import Router
from weft.planner.routing.way import Hop, Way, shortest_way

__all__ = [
    "DOWN",
    "Arrival",
    "Call",
    "Cost",
    "Errand",
    "Goal",
    "History",
    "Hop",
    "Lowering",
    "Monitor",
    "Reroute",
    "RoutedTool",
    "Router",
    "Scene",
    "Signal",
    "ToolGraph",
    "Way",
    "Weights",
    "heal",
    "healing",
    "read_tool_graph",
    "shortest_way",
]
