"""Monitors for most routes: changed intent, tool probes, risks, slow tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Any

from weft.planner.routing.cost import DOWN
from weft.planner.routing.goal import Goal
from weft.planner.routing.monitor import MonitorSignal, RouterState

Meaning = Callable[[Goal, Mapping[str, Any]], Goal | None]
"""(the goal, the values so far) -> the intended goal; None: unchanged."""


class IntentMonitor:
    """Implements `RouteMonitor`: evaluates `meaning` after every call."""

    def __init__(self, meaning: Meaning, *, priority: float = 1.0) -> None:
        self.name = "intent"
        self.every_s: float | None = None
        self._meaning = meaning
        self._priority = priority
        self._latest: MonitorSignal | None = None

    async def look(self, state: RouterState) -> Sequence[MonitorSignal]:
        intended = self._meaning(state.goal, state.values)
        if intended is not None and intended != state.goal:
            reason = f"{intended.name} is meant now"
            self._latest = MonitorSignal(self._priority, reason, goal=intended)
        return [] if self._latest is None else [self._latest]


Probe = Callable[[], Awaitable[bool]]
"""True: the tool is up. False or an exception: it is down."""


class ProbeMonitor:
    """Implements `RouteMonitor`: runs all `probes`, by tool, each within `timeout_s`."""

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

    async def look(self, state: RouterState) -> Sequence[MonitorSignal]:  # noqa: ARG002 - the port
        async with asyncio.TaskGroup() as group:
            tasks = {
                tool: group.create_task(self._objection(probe))
                for tool, probe in self._probes.items()
            }
        objections = {tool: task.result() for tool, task in tasks.items()}
        return [
            MonitorSignal(self._priority, why, tool, health=DOWN)
            for tool, why in objections.items()
            if why
        ]

    async def _objection(self, probe: Probe) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):
                return "" if await probe() else "its probe says that it is down"
        except Exception as error:  # noqa: BLE001 - a probe that fails is the answer
            return f"its probe failed: {type(error).__name__}"


Rule = Callable[[str, Mapping[str, Any]], float]
"""(tool, the values so far) -> its risk: 0 none, infinite: it must not be called."""


class RiskMonitor:
    """Implements `RouteMonitor`: evaluates `rule` for each of `tools`."""

    def __init__(self, tools: Sequence[str], rule: Rule, *, priority: float = 0.8) -> None:
        self.name = "risk"
        self.every_s: float | None = None
        self._tools = tools
        self._rule = rule
        self._priority = priority

    async def look(self, state: RouterState) -> Sequence[MonitorSignal]:
        risks = {tool: self._rule(tool, state.values) for tool in self._tools}
        return [self._signal(tool, risk) for tool, risk in risks.items() if risk > 0]

    def _signal(self, tool: str, risk: float) -> MonitorSignal:
        if risk == inf:
            return MonitorSignal(self._priority, "too risky now", tool, health=DOWN)
        return MonitorSignal(self._priority, f"risk {risk:g}", tool, risk=risk)


class LatencyMonitor:
    """Implements `RouteMonitor`. `expected_s` by group; `groups` maps tools to groups.

    Tools of one group share the cause of slowness: a provider, a network, a machine. When a call
    takes more than `factor` times the expected time of its group, the price of all tools of the
    group rises by the same factor, at most `most`.
    """

    def __init__(
        self,
        expected_s: Mapping[str, float],
        groups: Mapping[str, str],
        *,
        factor: float = 3.0,
        most: float = 20.0,
        priority: float = 0.5,
    ) -> None:
        self.name = "tool latency"
        self.every_s: float | None = None
        self._expected_s = expected_s
        self._groups = groups
        self._factor = factor
        self._most = most
        self._priority = priority

    async def look(self, state: RouterState) -> Sequence[MonitorSignal]:
        late: dict[str, float] = {}
        for call in state.calls:
            group = self._groups.get(call.tool, "")
            expected_s = self._expected_s.get(group, 0.0)
            if expected_s > 0:
                late[group] = call.latency_s / expected_s  # the last call counts
        return [
            MonitorSignal(
                self._priority,
                f"{late[group]:.1f} times slower than expected",
                tool,
                health=min(self._most, late[group]),
            )
            for tool, group in self._groups.items()
            if late.get(group, 0.0) > self._factor
        ]


__all__ = ["IntentMonitor", "LatencyMonitor", "ProbeMonitor", "RiskMonitor"]
