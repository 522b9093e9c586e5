"""Random graphs of tools, and tools that fail on command. Results are handles, see the oracle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from evals.planning.healing.oracle import Made
from weft.core.errors import ToolRaised, ToolResultError
from weft.core.values import ToolSpec
from weft.planner.routing import CallCost, RoutedTool, ToolGraph

START = {"s0": "start 0", "s1": "start 1"}


@dataclass
class World:
    """Implements `ToolRunner` over a graph: `broken` tools fail as given, all others work."""

    graph: ToolGraph
    broken: Mapping[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name, "", {"type": "object"}) for name in self.graph.tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        self.calls.append(name)
        match self.broken.get(name):
            case "raises":
                raise ToolRaised(f"{name} raised")
            case "lies":
                raise ToolResultError(f"{name} returned what it does not promise")
            case "hangs":
                await asyncio.Event().wait()
            case "late":
                await asyncio.sleep(self.graph.tools[name].cost.latency_s)
                raise ToolRaised(f"{name} raised late")
            case "foreign":
                raise KeyError(name)
            case "cancels":
                raise asyncio.CancelledError
        await asyncio.sleep(self.graph.tools[name].cost.latency_s)
        handle = f"r{len(self.made)}"
        self.made[handle] = Made(name, dict(arguments))
        return handle


@st.composite
def graphs(draw: st.DrawFn, *, joins: bool = True) -> ToolGraph:
    """Up to eight tools that need and give a few names, in circles too."""
    count = draw(st.integers(1, 8))
    facts = [f"f{number}" for number in range(4)]
    tools = []
    for number in range(count):
        named = st.sampled_from([*START, *facts, *(f"t{other}" for other in range(number))])
        groups = st.lists(named, min_size=1, max_size=3).map(tuple)
        needs = draw(st.lists(groups, min_size=1, max_size=3 if joins else 1))
        cost = CallCost(
            latency_s=draw(st.integers(0, 5)),
            money=draw(st.sampled_from([0.0, 0.1, 1.0])),
            reliability=draw(st.sampled_from([0.5, 0.9, 1.0])),
        )
        tools.append(
            RoutedTool(
                f"t{number}",
                {f"p{place}": group for place, group in enumerate(needs)},
                tuple(draw(st.lists(st.sampled_from(facts), max_size=2, unique=True))),
                cost=cost,
                timeout_s=50.0,
            )
        )
    return ToolGraph(tools)


FAULTS = ("raises", "lies", "hangs", "late", "foreign", "cancels")


def faults(graph: ToolGraph) -> st.SearchStrategy[dict[str, str]]:
    """Which tools are broken, and how."""
    return st.dictionaries(st.sampled_from(list(graph.tools)), st.sampled_from(FAULTS))
