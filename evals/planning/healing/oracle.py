"""What can be had with the tools that work, and whether a value was come by honestly. Brute force.

Knows nothing of ways, prices and routers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft.planner.routing import ToolGraph


@dataclass(frozen=True, slots=True)
class Made:
    """How a value came about: the tool, and what it was called with."""

    tool: str
    arguments: Mapping[str, Any]


def reachable(graph: ToolGraph, have: Collection[str], broken: Collection[str]) -> frozenset[str]:
    """All names that can be had from `have` with tools that are not `broken`, by saturation."""
    there = frozenset(have)
    while True:
        more = {
            name
            for tool in graph.tools.values()
            if tool.name not in broken
            and all(there.intersection(demand.sources) for demand in tool.demands)
            for name in tool.names
        }
        if more <= there:
            return there
        there |= more


def objections(
    value: object, name: str, graph: ToolGraph, have: Mapping[str, Any], made: Mapping[str, Made]
) -> Iterator[str]:
    """Why `value` is no honest result under `name`; nothing when it is one.

    `have` are the values at the start; `made` how the others came about, in the order they did.
    """
    if name in have and value == have[name]:
        return
    origin = made.get(value) if isinstance(value, str) else None
    if origin is None or name not in graph.tools[origin.tool].names:
        yield f"{value!r} is no {name}"
        return
    earlier = {handle: made[handle] for handle in list(made)[: list(made).index(str(value))]}
    for demand in graph.tools[origin.tool].demands:
        if demand.parameter is None:
            fine = any(_there(source, graph, have, earlier) for source in demand.sources)
            given: object = "nothing that came before"
        else:
            given = origin.arguments.get(demand.parameter)
            wrong = (objections(given, source, graph, have, made) for source in demand.sources)
            fine = not all(any(one) for one in wrong)
        if not fine:
            yield f"{origin.tool} was given {given!r} for {' or '.join(demand.sources)}"


def _there(name: str, graph: ToolGraph, have: Mapping[str, Any], made: Mapping[str, Made]) -> bool:
    return name in have or any(
        name in graph.tools[origin.tool].names
        and not any(objections(handle, name, graph, have, made))
        for handle, origin in made.items()
    )
