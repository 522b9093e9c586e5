"""Scenarios on the tool graphs of TaskBench (arXiv 2311.18760), read in place.

Its gold plans are not published; errands are drawn from the graphs with a seed: run this tool, or
have something of this type. A single failure is one tool of the best way. A compound failure breaks
the best way again and again: a tool of it, then one of what is best without that, and so on. What
is wanted by name does not fail itself, and at most a quarter of the scenarios cannot be solved.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, get_args

from evals.planning.data import folder
from evals.planning.healing.scenario import Scenario
from evals.planning.healing.workshop import Fault
from weft.planner.routing import (
    Cost,
    Errand,
    Goal,
    RoutedTool,
    ToolGraph,
    Way,
    Weights,
    read_tool_graph,
    shortest_way,
)

TYPED: Final = ("huggingface", "multimedia")
PLAIN: Final = "dailylifeapis"
SEED: Final = 20260301
_FAULTS: Final[Sequence[Fault]] = get_args(Fault)
_STARTS: Final = (("text",), ("image",), ("audio",), ("url",), ("video",), ("text", "image"))
_DELIVER: Final = "deliver "
_LINKS: Final = 3
_LEAST_HOPS: Final = 2
_MOST_FAULTS: Final = 4
_WEIGHTS: Final = Weights()


def scenarios(count: int) -> Iterator[Scenario]:
    """`count` single and as many compound failures for each graph. Raises: `Skipped`."""
    for name in (*TYPED, PLAIN):
        graph = read_tool_graph(folder("planner/taskbench") / f"{name}.graph_desc.json")
        rng = random.Random(f"{SEED} {name}")
        makers = {"single": _single, "compound": _compound}
        for kind, make in makers.items():
            topology = f"taskbench_{name}_{kind}"
            yield from islice(_solvable(_drawn(graph, name, topology, make, rng)), count)


def _drawn(
    graph: ToolGraph, name: str, topology: str, make: Make, rng: random.Random
) -> Iterator[Scenario]:
    for number in itertools.count(1):
        case = _errand(graph, name, rng)
        faults = make(*case, rng) if case is not None else {}
        if case is not None and faults:
            yield Scenario(f"{topology}_{number}", topology, *case, faults)


def _solvable(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """Leaves scenarios out where more than a quarter could not be solved."""
    total = unsolvable = 0
    for scenario in scenarios:
        if scenario.feasible or 4 * (unsolvable + 1) <= total + 1:
            total += 1
            unsolvable += not scenario.feasible
            yield scenario


Case = tuple[ToolGraph, Mapping[str, Any], Errand]
Make = Callable[[ToolGraph, Mapping[str, Any], Errand, random.Random], dict[str, Fault]]


def _errand(graph: ToolGraph, name: str, rng: random.Random) -> Case | None:
    """Something to do that takes at least two calls; None where the draw gives less."""
    own = _thinned(graph, rng) if name == PLAIN else _priced(graph, rng)
    starts = ("start",) if name == PLAIN else rng.choice(_STARTS)
    deliveries = [tool for tool in own.tools if tool.startswith(_DELIVER)]
    goals = rng.sample(deliveries or list(own.tools), 1)
    if rng.random() < 0.5:
        goals = rng.sample(list(graph.tools), rng.choice((1, 2)))
    have = {start: f"given {start}" for start in starts}
    lesser = tuple(Goal(f"only {tool}", (tool,)) for tool in rng.sample(list(own.tools), 2))
    errand = Errand(Goal("the goal", tuple(goals)), lesser)
    way = _way(own, have, errand.goal, {})
    return (own, have, errand) if way is not None and len(way.hops) >= _LEAST_HOPS else None


def _priced(graph: ToolGraph, rng: random.Random) -> ToolGraph:
    """The same tools with latencies from 0.1 s to 2 s; and one for each type, that delivers it.

    What is of a type is what may fill a parameter of that name.
    """
    tools = [
        RoutedTool(tool.name, tool.needs, cost=Cost(rng.uniform(0.1, 2.0)))
        for tool in graph.tools.values()
    ]
    of_type = {kind: sources for tool in tools for kind, sources in tool.needs.items()}
    for kind, sources in of_type.items():
        made = tuple(source for source in sources if source in graph.tools)
        if made and not kind.endswith("_2"):
            tools.append(RoutedTool(f"{_DELIVER}{kind}", {kind: made}, cost=Cost(0.1)))
    return ToolGraph(tools)


def _thinned(graph: ToolGraph, rng: random.Random) -> ToolGraph:
    """The graph in which all may follow all, cut down to `_LINKS` links to each tool."""
    names = list(graph.tools)
    beginnings = set(rng.sample(names, _LINKS))
    tools = []
    for name in names:
        before = rng.sample([other for other in names if other != name], _LINKS)
        sources = ("start", *before) if name in beginnings else tuple(before)
        tools.append(RoutedTool(name, after=(sources,), cost=Cost(rng.uniform(0.1, 2.0))))
    return ToolGraph(tools)


def _single(
    graph: ToolGraph, have: Mapping[str, Any], errand: Errand, rng: random.Random
) -> dict[str, Fault]:
    way = _way(graph, have, errand.goal, {})
    breakable = _breakable(way, errand)
    return {rng.choice(breakable): rng.choice(_FAULTS)} if breakable else {}


def _compound(
    graph: ToolGraph, have: Mapping[str, Any], errand: Errand, rng: random.Random
) -> dict[str, Fault]:
    faults: dict[str, Fault] = {}
    for _ in range(rng.randint(2, _MOST_FAULTS)):
        breakable = _breakable(_way(graph, have, errand.goal, faults), errand)
        if not breakable:
            break
        faults[rng.choice(breakable)] = rng.choice(_FAULTS)
    return faults if len(faults) > 1 else {}


def _breakable(way: Way | None, errand: Errand) -> list[str]:
    hops = way.hops if way is not None else ()
    return [hop.tool for hop in hops if hop.tool not in errand.goal.wants]


def _way(
    graph: ToolGraph, have: Mapping[str, Any], goal: Goal, faults: Mapping[str, Fault]
) -> Way | None:
    def price(tool: str) -> float:
        return _WEIGHTS.price(graph.tools[tool].cost, float("inf") if tool in faults else 1.0)

    return shortest_way(graph, have, goal.wants, price)
