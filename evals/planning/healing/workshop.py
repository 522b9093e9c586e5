"""Tools that do nothing but say what they did, or fail as told, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from evals.planning.healing.oracle import Made
from weft.core.errors import ToolLimitError, ToolRaised, ToolResultError
from weft.core.values import ToolSpec
from weft.planner.routing import ToolGraph

Fault = Literal["raises", "late", "lies", "hangs"]
CUT_OFF_S = 30.0
PROBE_S = 0.05
_DOWN: frozenset[Fault] = frozenset(("raises", "hangs"))


class Workshop:
    """Implements `ToolRunner` over `graph`; tools in `faults` fail.

    raises   at once
    late     after all their time
    lies     return what they do not promise
    hangs    do not answer, and are cut off after `CUT_OFF_S`, for every system alike

    A result is a handle such as `r3`; `made` says how it came about. `failed` lists failed calls.
    """

    def __init__(self, graph: ToolGraph, faults: Mapping[str, Fault]) -> None:
        self._graph = graph
        self._faults = faults
        self.made: dict[str, Made] = {}
        self.calls: list[str] = []
        self.failed: list[str] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(_spec(name, self._graph) for name in self._graph.tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.calls.append(name)
        fault = self._faults.get(name)
        if fault is not None:
            self.failed.append(name)
            await self._fail(name, fault)
        await asyncio.sleep(self._graph.tools[name].cost.latency_s)
        handle = f"r{len(self.made) + 1}"
        self.made[handle] = Made(name, dict(arguments))
        return handle

    async def probe(self, name: str) -> bool:
        """Whether that tool is up: what is down is seen, what is late or lies is not."""
        await asyncio.sleep(PROBE_S)
        return self._faults.get(name) not in _DOWN

    async def _fail(self, name: str, fault: Fault) -> None:
        match fault:
            case "raises":
                raise ToolRaised(f"{name} raised ConnectionError: refused")
            case "late":
                await asyncio.sleep(self._graph.tools[name].cost.latency_s)
                raise ToolRaised(f"{name} raised ServiceUnavailable: 503")
            case "lies":
                raise ToolResultError(f"{name} returned what it does not promise")
            case "hangs":
                await asyncio.sleep(CUT_OFF_S)
                raise ToolLimitError(f"{name} did not answer within {CUT_OFF_S:g} s")


def _spec(name: str, graph: ToolGraph) -> ToolSpec:
    parameters = [d.parameter for d in graph.tools[name].demands if d.parameter is not None]
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in parameters},
        "required": parameters,
        "additionalProperties": False,
    }
    return ToolSpec(name, "", schema, {"type": "string"})
