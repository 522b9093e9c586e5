"""The cheapest route from the available values to a goal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from weft.planner.routing.graph import ToolGraph

Price = Callable[[str], float]
"""The price of a tool's call; infinite: it must not be called."""


@dataclass(frozen=True, slots=True)
class RouteStep:
    """A call of `tool`; `sources` are the names that meet its inputs, in order."""

    tool: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """Calls in dependency order, and the sum of their prices."""

    steps: tuple[RouteStep, ...] = ()
    cost: float = 0.0


def shortest_route(
    graph: ToolGraph, have: Collection[str], wants: Sequence[str], price: Price
) -> Route | None:
    """The cheapest route from the names in `have` to all of `wants`; None: no finite one.

    For each want in turn Knuth's generalisation of Dijkstra's algorithm to AND/OR graphs (A
    generalization of Dijkstra's algorithm, 1977): where every tool has one input, it is Dijkstra's
    algorithm. A call costs its price and that of all it needs, so a part shared by two inputs
    counts twice in comparisons, but is called once; results for one want are free for the next.
    O(E log V) for each want.
    """
    steps: dict[str, RouteStep] = {}
    there = set(have)
    for want in wants:
        found = _RouteSearch(graph, there, price).towards(want)
        if found is None:
            return None
        for step in found:
            steps[step.tool] = step
            there.update(graph.tools[step.tool].names)
    return Route(tuple(steps.values()), sum(price(tool) for tool in steps))


class _RouteSearch:
    """One search. `_cost` holds the settled names, `_giver` the tool that gives each."""

    def __init__(self, graph: ToolGraph, have: Collection[str], price: Price) -> None:
        self._graph = graph
        self._price = price
        self._cost: dict[str, float] = {}
        self._giver: dict[str, str] = {}
        self._met: dict[str, dict[int, str]] = {}
        self._heap: list[tuple[float, int, int, str, str]] = []
        for name in sorted(have):
            heappush(self._heap, (0.0, -1, 0, name, ""))
        for tool, demands in graph.demands.items():
            if not demands:
                self._complete(tool, {})

    def towards(self, want: str) -> list[RouteStep] | None:
        while self._heap and want not in self._cost:
            cost, _, _, name, giver = heappop(self._heap)
            if name not in self._cost:
                self._settle(name, cost, giver)
        return self._hops(want) if want in self._cost else None

    def _settle(self, name: str, cost: float, giver: str) -> None:
        self._cost[name] = cost
        self._giver[name] = giver
        for tool, place in self._graph.users.get(name, ()):
            met = self._met.setdefault(tool, {})
            if place not in met:  # the first to be settled is the cheapest
                met[place] = name
                if len(met) == len(self._graph.demands[tool]):
                    self._complete(tool, met)

    def _complete(self, tool: str, met: dict[int, str]) -> None:
        self._met[tool] = met
        cost = self._price(tool) + sum(self._cost[name] for name in met.values())
        if cost < inf:
            for place, name in enumerate(self._graph.tools[tool].names):
                heappush(self._heap, (cost, self._graph.order[tool], place, name, tool))

    def _hops(self, want: str) -> list[RouteStep]:
        """The calls that `want` depends on, in dependency order."""
        found: dict[str, RouteStep] = {}
        todo = [want]
        while todo:
            tool = self._giver[todo[-1]]
            if not tool or tool in found:
                todo.pop()
                continue
            met = self._met[tool]
            sources = tuple(met[place] for place in range(len(met)))
            open_ = [s for s in sources if self._giver[s] and self._giver[s] not in found]
            if open_:
                todo += reversed(open_)
            else:
                found[tool] = RouteStep(tool, sources)
                todo.pop()
        return list(found.values())
