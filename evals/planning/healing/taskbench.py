"""Errands on the tool graphs of TaskBench (arXiv 2311.18760), read in place. Knows no faults.

Its gold plans are not published; errands are drawn from the graphs: run this tool, or have
something of this type. Each takes at least two calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from evals.planning.data import folder
from evals.planning.healing.scenario import Case
from weft.planner.routing import (
    CallCost,
    Goal,
    RoutedTool,
    RouteGoal,
    RouteWeights,
    ToolGraph,
    read_tool_graph,
    shortest_route,
)

TYPED: Final = ("huggingface", "multimedia")
PLAIN: Final = "dailylifeapis"
_STARTS: Final = (("text",), ("image",), ("audio",), ("url",), ("video",), ("text", "image"))
_DELIVER: Final = "deliver "
_LINKS: Final = 3
_LEAST_HOPS: Final = 2
_WEIGHTS: Final = RouteWeights()


def draws() -> Mapping[str, Callable[[random.Random], Case]]:
    """For each graph what draws an errand on it. Raises: `Skipped`."""
    return {name: _draw(name) for name in (*TYPED, PLAIN)}


def _draw(name: str) -> Callable[[random.Random], Case]:
    graph = read_tool_graph(folder("planner/taskbench") / f"{name}.graph_desc.json")
    return partial(_case, graph, name)


def _case(graph: ToolGraph, name: str, rng: random.Random) -> Case:
    while True:
        case = _errand(graph, name, rng)
        if _hops(case) >= _LEAST_HOPS:
            return case


def _hops(case: Case) -> int:
    """The calls of the cheapest way while everything works; 0: there is none."""

    def price(tool: str) -> float:
        return _WEIGHTS.price(case.graph.tools[tool].cost)

    way = shortest_route(case.graph, case.have, case.errand.goal.wants, price)
    return 0 if way is None else len(way.steps)


def _errand(graph: ToolGraph, name: str, rng: random.Random) -> Case:
    own = _thinned(graph, rng) if name == PLAIN else _priced(graph, rng)
    starts = ("start",) if name == PLAIN else rng.choice(_STARTS)
    deliveries = [tool for tool in own.tools if tool.startswith(_DELIVER)]
    goals = rng.sample(deliveries or list(own.tools), 1)
    if rng.random() < 0.5:
        goals = rng.sample(list(graph.tools), rng.choice((1, 2)))
    have = {start: f"given {start}" for start in starts}
    lesser = tuple(Goal(f"only {tool}", (tool,)) for tool in rng.sample(list(own.tools), 2))
    return Case(own, have, RouteGoal(Goal("the goal", tuple(goals)), lesser))


def _priced(graph: ToolGraph, rng: random.Random) -> ToolGraph:
    """The same tools with latencies from 0.1 s to 2 s; and one for each type, that delivers it.

    What is of a type is what may fill a parameter of that name.
    """
    tools = [
        RoutedTool(tool.name, tool.needs, cost=CallCost(rng.uniform(0.1, 2.0)))
        for tool in graph.tools.values()
    ]
    of_type = {kind: sources for tool in tools for kind, sources in tool.needs.items()}
    for kind, sources in of_type.items():
        made = tuple(source for source in sources if source in graph.tools)
        if made and not kind.endswith("_2"):
            tools.append(RoutedTool(f"{_DELIVER}{kind}", {kind: made}, cost=CallCost(0.1)))
    return ToolGraph(tools)


def _thinned(graph: ToolGraph, rng: random.Random) -> ToolGraph:
    """The graph in which all may follow all, cut down to `_LINKS` links to each tool."""
    names = list(graph.tools)
    beginnings = set(rng.sample(names, _LINKS))
    tools = []
    for name in names:
        before = rng.sample([other for other in names if other != name], _LINKS)
        sources = ("start", *before) if name in beginnings else tuple(before)
        tools.append(RoutedTool(name, after=(sources,), cost=CallCost(rng.uniform(0.1, 2.0))))
    return ToolGraph(tools)
