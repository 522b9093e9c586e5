"""Tool health: asks whether tools are up before anybody calls them. Knows no way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from weft.planner.routing.cost import DOWN
from weft.planner.routing.monitor import Scene, Signal

Probe = Callable[[], Awaitable[bool]]
"""True: the tool is up. One that raises means that it is not."""


class Probes:
    """Implements `Monitor`: `probes` by tool, all at once; a probe has `timeout_s` to answer."""

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        every_s: float | None = None,
        timeout_s: float = 2.0,
        priority: float = 0.9,
    ) -> None:
        self.name = "tool health"
        self.every_s = every_s
        self._probes = probes
        self._timeout_s = timeout_s
        self._priority = priority

    async def look(self, scene: Scene) -> Sequence[Signal]:  # noqa: ARG002 - what happened is no matter
        async with asyncio.TaskGroup() as group:
            asked = {
                tool: group.create_task(self._objection(probe))
                for tool, probe in self._probes.items()
            }
        objections = {tool: task.result() for tool, task in asked.items()}
        return [
            Signal(self._priority, why, tool, health=DOWN)
            for tool, why in objections.items()
            if why
        ]

    async def _objection(self, probe: Probe) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):
                return "" if await probe() else "its probe says that it is down"
        except Exception as error:  # noqa: BLE001 - a probe that fails is the answer
            return f"its probe failed: {type(error).__name__}"
